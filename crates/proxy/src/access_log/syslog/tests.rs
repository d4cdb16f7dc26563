//! Tests of a collector's messages, and of what is lost.

use std::net::SocketAddr;

use model::{Facility, UnixPath};

use super::*;

fn collector(to: SyslogTarget) -> Collector {
    let app_name = "edge".to_owned();
    Collector::new(&Syslog { to, facility: Facility::Local3, app_name })
}

fn batch(lines: &str) -> Batch {
    Batch {
        lines: lines.as_bytes().to_vec(),
        count: lines.lines().count() as u64,
        at: Duration::from_millis(1_763_619_180_123),
    }
}

/// The messages of `frames`, without their lengths.
fn messages(mut frames: &[u8]) -> Vec<String> {
    let mut messages = Vec::new();
    while !frames.is_empty() {
        let (message, length) = first_message(frames);
        messages.push(String::from_utf8(message.to_vec()).unwrap());
        frames = &frames[length..];
    }
    messages
}

#[test]
fn a_line_is_a_message_of_rfc_5424_behind_its_length() {
    let mut collector =
        collector(SyslogTarget::Tcp("127.0.0.1:1".parse::<SocketAddr>().unwrap().into()));
    collector.add(batch("one\n{\"path\":\"/é\"}\n"));
    assert!(collector.waiting_bytes > 0);
    assert!(collector.frame());
    assert_eq!(collector.waiting_bytes, 0);
    let sent = messages(&collector.frames);
    assert_eq!(sent.len(), 2);
    // Local3 is 19, info 6.
    assert!(sent[0].starts_with("<158>1 2025-11-20T06:13:00.123Z "), "{sent:?}");
    let pid = std::process::id();
    assert!(sent[0].ends_with(&format!(" edge {pid} access - one")), "{sent:?}");
    assert!(sent[1].ends_with(" access - {\"path\":\"/é\"}"), "{sent:?}");
    assert!(!collector.frame());
}

#[test]
fn a_datagram_is_bounded_and_cut_between_characters() {
    let mut collector = collector(SyslogTarget::Unix(UnixPath::new("/nowhere").unwrap()));
    let long = "é".repeat(DATAGRAM_MAX_BYTES);
    collector.add(batch(&format!("{long}\nx{long}\nshort\n")));
    assert!(collector.frame());
    let sent = messages(&collector.frames);
    assert!(sent.iter().all(|message| message.len() <= DATAGRAM_MAX_BYTES));
    assert!(sent[0].len() >= DATAGRAM_MAX_BYTES - 1 && sent[1].len() >= DATAGRAM_MAX_BYTES - 1);
    assert!(sent[0].ends_with("é[truncated]") && sent[1].ends_with("é[truncated]"));
    let pid = std::process::id();
    assert_eq!(sent[2], format!("<158>Nov 20 06:13:00 edge[{pid}]: short"));
}

#[test]
fn a_message_that_was_cut_off_is_sent_again_from_its_beginning() {
    let frames = b"3 abc2 de10 0123456789";
    for (sent, begin, left) in
        [(0, 0, 3), (4, 0, 3), (5, 5, 2), (8, 5, 2), (9, 9, 1), (21, 9, 1), (22, 22, 0)]
    {
        assert_eq!((begin_of_frame(frames, sent), unsent(frames, sent)), (begin, left), "{sent}");
    }
}

#[test]
fn what_waits_is_bounded_and_what_is_lost_is_counted_once() {
    let mut collector = collector(SyslogTarget::Unix(UnixPath::new("/nonexistent/log").unwrap()));
    // Eight of these fit.
    let count = 64 * 1024 - 4;
    let lines = "0123456789abcde\n".repeat(count);
    for _ in 0..10 {
        collector.add(batch(&lines));
        assert!(collector.waiting_bytes <= WAITING_MAX_BYTES);
    }
    assert_eq!(collector.take_lost(), 2 * count as u64);
    assert_eq!(collector.take_lost(), 0);
    let now = os::clock::now();
    collector.send(now);
    let due = collector.due.expect("a pause after a failure");
    // Too early: nothing is attempted.
    collector.send(now);
    assert_eq!(collector.due, Some(due));
    collector.finish();
    assert_eq!(collector.take_lost(), 8 * count as u64);
    assert!(collector.wait(now).is_none());
}

#[test]
fn a_local_time_is_that_of_syslog_3() {
    assert_eq!(&local_time(b"2026-01-09T18:38:07.123Z"), b"Jan  9 18:38:07");
    assert_eq!(&local_time(b"2026-12-31T23:59:59.999Z"), b"Dec 31 23:59:59");
}
