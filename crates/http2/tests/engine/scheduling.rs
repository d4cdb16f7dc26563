//! Scheduling of streams that send.

use crate::rig::*;
use http2::StreamKey;

/// Returns a server with unlimited windows and a response in progress on each stream. `priorities`
/// are those of the requests; empty: none.
fn responses(priorities: &[&str]) -> (Rig, Vec<StreamKey>) {
    let mut rig = Rig::server(CONFIG);
    rig.feed(&frame(SETTINGS, 0, 0, &setting(4, 0x7fff_ffff)));
    rig.feed(&frame(WINDOW_UPDATE, 0, 0, &0x7000_0000_u32.to_be_bytes()));
    for (stream, priority) in (0..).map(|n| 2 * n + 1).zip(priorities) {
        let mut block = GET.to_vec();
        if !priority.is_empty() {
            block.extend(literal(b"priority", priority.as_bytes()));
        }
        rig.feed(&frame(HEADERS, 5, stream, &block));
    }
    let keys = rig.keys.clone();
    for &key in &keys {
        rig.connection.send_head(key, b"HTTP/1.1 200 OK\r\n\r\n", false).unwrap();
    }
    (rig, keys)
}

/// Lets each stream send as much as it can for a number of rounds, in which the peer takes
/// `per_round` bytes; returns the bytes of content by stream.
fn transfer(rig: &mut Rig, keys: &[StreamKey], rounds: usize, per_round: usize) -> Vec<usize> {
    let mut sent = vec![0; keys.len()];
    let content = vec![7; 100_000];
    let mut write = |rig: &mut Rig, at: usize| {
        while let Ok(taken @ 1..) = rig.connection.send_data(keys[at], &content, false, rig.now) {
            sent[at] += taken;
        }
    };
    for at in 0..keys.len() {
        write(rig, at);
    }
    for _ in 0..rounds {
        let waits: usize = rig.connection.output().iter().map(|part| part.len()).sum();
        rig.connection.sent(waits.min(per_round));
        let mut turns = Vec::new();
        while let Some(key) = rig.connection.next_writable() {
            turns.push(keys.iter().position(|&other| other == key).unwrap());
        }
        for at in turns {
            write(rig, at);
        }
    }
    sent
}

#[test]
fn streams_without_a_priority_share() {
    let (mut rig, keys) = responses(&["", "", "", "", ""]);
    let sent = transfer(&mut rig, &keys, 1_000, 20_000);
    let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
    assert!(most - least <= 150_000 && *least > 3_000_000, "{sent:?}");
}

#[test]
fn urgent_streams_go_first_and_none_starves() {
    let (mut rig, keys) = responses(&["u=5", "u=1, i", "", "u=1, i"]);
    let sent = transfer(&mut rig, &keys, 1_000, 20_000);
    let all: usize = sent.iter().sum();
    assert!(sent[1] + sent[3] > all * 3 / 4, "{sent:?}");
    assert!(sent[1].abs_diff(sent[3]) < all / 10, "{sent:?}");
    assert!(sent[0] > all / 50 && sent[2] > all / 50, "{sent:?}");
}

#[test]
fn of_streams_that_are_not_incremental_one_goes_first() {
    let (mut rig, keys) = responses(&["u=3", "u=3", "u=3"]);
    let sent = transfer(&mut rig, &keys, 1_000, 20_000);
    assert!(sent[0] > sent[1] * 2 && sent[0] > sent[2] * 2, "{sent:?}");
}

#[test]
fn a_priority_may_come_before_its_request_and_change() {
    let mut rig = Rig::server(CONFIG);
    for stream in (1..200_u32).step_by(2).chain([1, 3]) {
        let update = [&stream.to_be_bytes()[..], b"u=0"].concat();
        rig.feed(&frame(PRIORITY_UPDATE, 0, 0, &update));
    }
    rig.feed(&frame(HEADERS, 5, 1, GET));
    rig.feed(&frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=7"));
    assert!(rig.errors().is_empty() && rig.take().len() == 1);
}

#[test]
fn a_closed_stream_window_does_not_block_other_streams() {
    let (mut rig, keys) = responses(&["", ""]);
    // The first stream's window is now 10,000; the other's is opened again.
    rig.feed(&frame(SETTINGS, 0, 0, &setting(4, 10_000)));
    rig.feed(&frame(WINDOW_UPDATE, 0, 3, &0x7000_0000_u32.to_be_bytes()));
    let sent = transfer(&mut rig, &keys, 100, 20_000);
    assert_eq!(sent[0], 10_000);
    assert!(sent[1] > 1_500_000, "{sent:?}");
    rig.feed(&frame(WINDOW_UPDATE, 0, 1, &5_000_u32.to_be_bytes()));
    let sent = transfer(&mut rig, &keys, 10, 20_000);
    assert_eq!(sent[0], 5_000);
}
