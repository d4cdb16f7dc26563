//! A direction's decisions: their shares, and that a seed repeats them.

use super::*;
use crate::link::way::{Bursts, Reorder};
use crate::units::{Rate, Share, Size, Time};

const MS: u64 = 1_000_000;

fn packet(bytes: u32) -> Facts {
    Facts { bytes, source: Some([10, 0, 0, 1].into()), opens: false }
}

fn ms(millis: u64) -> Time {
    Time(std::time::Duration::from_millis(millis))
}

fn passage(verdict: Verdict) -> Passage {
    match verdict {
        Verdict::Pass(passage) => passage,
        Verdict::Drop(reason) => panic!("dropped: {reason:?}"),
    }
}

/// Decisions about packets of 1,000 bytes, `distance_ns` apart.
fn decisions(way: &Way, seed: u64, distance_ns: u64, packets: u64) -> Vec<Verdict> {
    let mut path = Path::new(way.clone(), seed);
    (0..packets).map(|number| path.decide(packet(1_000), number * distance_ns)).collect()
}

#[test]
fn a_link_that_does_nothing_passes_everything_at_once() {
    let expected = Passage { at_ns: 5, behind: 0, held_ns: 0, copies: 1 };
    assert_eq!(Path::new(Way::default(), 1).decide(packet(60), 5), Verdict::Pass(expected));
}

#[test]
fn the_same_seed_makes_the_same_decisions_and_another_others() {
    let way = Way {
        delay: ms(10),
        jitter: ms(2),
        loss: Share(0.1),
        bursts: Some(Bursts { begin: Share(0.01), end: Share(0.2), loss: Share(0.9) }),
        duplicate: Share(0.1),
        reorder: Some(Reorder { share: Share(0.1), by: None, packets: Some(3) }),
        rate: Some(Rate(10e6)),
        ..Way::default()
    };
    let first = decisions(&way, 42, MS / 2, 5_000);
    assert_eq!(first, decisions(&way, 42, MS / 2, 5_000));
    assert_ne!(first, decisions(&way, 43, MS / 2, 5_000));
}

#[test]
fn switching_one_kind_on_leaves_the_decisions_of_others_as_they_were() {
    let lossy = Way { loss: Share(0.1), ..Way::default() };
    let both = Way { duplicate: Share(0.2), delay: ms(5), jitter: ms(1), ..lossy.clone() };
    let lost = |way: &Way| -> Vec<bool> {
        let verdicts = decisions(way, 9, MS, 2_000);
        verdicts.iter().map(|verdict| *verdict == Verdict::Drop(Reason::Lost)).collect()
    };
    assert_eq!(lost(&lossy), lost(&both));
}

#[test]
fn a_shaped_link_sends_as_fast_as_it_may_and_drops_what_finds_no_room() {
    // 8 Mb/s: a packet of 1,000 bytes takes a millisecond; ten of them may wait.
    let way = Way { rate: Some(Rate(8e6)), queue: Some(Size(10_000)), ..Way::default() };
    let verdicts = decisions(&way, 1, MS / 2, 1_000);
    let sent: Vec<u64> = verdicts
        .iter()
        .filter_map(|verdict| match verdict {
            Verdict::Pass(passage) => Some(passage.at_ns),
            Verdict::Drop(reason) => {
                assert_eq!(*reason, Reason::QueueFull);
                None
            }
        })
        .collect();
    assert!(sent.windows(2).all(|two| two[1] - two[0] == MS), "one a millisecond");
    // 500 ms of sending, and what waits at the end.
    assert!((505..=511).contains(&sent.len()), "{}", sent.len());
    let waits = verdicts.iter().zip(0_u64..).filter_map(|(verdict, number)| match verdict {
        Verdict::Pass(passage) => Some(passage.at_ns - number * MS / 2),
        Verdict::Drop(_) => None,
    });
    assert!(waits.max().unwrap() <= 11 * MS);
}

#[test]
fn an_idle_link_sends_a_packet_that_is_larger_than_its_queue() {
    let way = Way { rate: Some(Rate(8e6)), queue: Some(Size(100)), ..Way::default() };
    assert_eq!(passage(Path::new(way, 1).decide(packet(1_000), 7)).at_ns, 7 + MS);
}

#[test]
fn a_wandering_delay_stays_within_its_bounds_and_in_order() {
    let way = Way { delay: ms(30), jitter: ms(5), ..Way::default() };
    let distance_ns = MS / 20;
    let at: Vec<u64> =
        decisions(&way, 3, distance_ns, 100_000).into_iter().map(|v| passage(v).at_ns).collect();
    assert!(at.is_sorted(), "a packet has overtaken another");
    let delays: Vec<u64> = at.iter().zip(0..).map(|(at, n)| at - n * distance_ns).collect();
    assert!(delays.iter().all(|delay| (25 * MS..=35 * MS).contains(delay)));
    let mean = delays.iter().sum::<u64>() / delays.len() as u64;
    assert!(mean.abs_diff(30 * MS) < MS / 2, "{mean}");
    let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!(most - least > 8 * MS, "it does wander: {least} to {most}");
}

#[test]
fn a_share_is_held_back_for_a_time_or_for_others() {
    for (by, packets) in [(Some(ms(4)), None), (None, Some(5)), (Some(ms(4)), Some(5))] {
        let reorder = Some(Reorder { share: Share(0.05), by, packets });
        let way = Way { delay: ms(10), reorder, ..Way::default() };
        let verdicts = decisions(&way, 3, MS, 20_000);
        let held: Vec<Passage> =
            verdicts.into_iter().map(passage).filter(|passage| passage.held_ns > 0).collect();
        assert!(held.len().abs_diff(1_000) < 120, "{}", held.len());
        for passage in held {
            assert_eq!(passage.behind, packets.unwrap_or(0));
            assert_eq!(passage.held_ns, if by.is_some() { 4 * MS } else { 100 * MS });
        }
    }
}

#[test]
fn some_come_twice() {
    let way = Way { duplicate: Share(0.05), ..Way::default() };
    let verdicts = decisions(&way, 3, MS, 20_000);
    let twice = verdicts.into_iter().filter(|verdict| passage(*verdict).copies == 2).count();
    assert!(twice.abs_diff(1_000) < 120, "{twice}");
}

#[test]
fn a_cut_link_passes_nothing_and_a_mended_one_goes_on() {
    let mut path = Path::new(Way { cut: true, ..Way::default() }, 1);
    assert_eq!(path.decide(packet(60), 5), Verdict::Drop(Reason::Cut));
    path.set(Way::default());
    assert!(matches!(path.decide(packet(60), 6), Verdict::Pass(_)));
}

#[test]
fn a_throttle_drops_new_connections_and_nothing_else() {
    let text = "throttle = { pools = [{ rate_per_s = 1, burst = 1 }] }";
    let mut path = Path::new(toml::from_str(text).unwrap(), 1);
    let opens = Facts { opens: true, ..packet(60) };
    assert!(matches!(path.decide(opens, 0), Verdict::Pass(_)));
    assert_eq!(path.decide(opens, MS), Verdict::Drop(Reason::Throttled));
    assert!(matches!(path.decide(packet(60), MS), Verdict::Pass(_)));
    assert!(matches!(path.decide(opens, 2_000 * MS), Verdict::Pass(_)));
}
