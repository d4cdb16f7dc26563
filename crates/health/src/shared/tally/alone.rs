//! Rise and fall of a probe that no other member runs.

use model::Cause;

use super::tests::{CALM, check};
use super::*;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn done(result: Result<(), Failure>) -> ProbeEvent {
    ProbeEvent::Done { elapsed: ms(5), result }
}

/// One letter a result (s success, r refused, 5 a status, l local), one letter the health
/// after it (? unknown, U up, D down).
#[test]
fn rise_and_fall_table() {
    let cases = [
        // rise, fall, from, results, healths
        (2, 3, Health::Unknown, "s", "U"),
        (2, 3, Health::Unknown, "rrr", "??D"),
        (2, 3, Health::Unknown, "rrs", "??U"),
        (2, 3, Health::Unknown, "rrrss", "??DDU"),
        (2, 3, Health::Up, "rrsrrr", "UUUUUD"),
        (2, 3, Health::Up, "r5r", "UUD"),
        (2, 3, Health::Down, "srss", "DDDU"),
        (1, 1, Health::Up, "rsr", "DUD"),
        (2, 3, Health::Up, "rlrlrl", "UUUUDD"),
        (2, 3, Health::Unknown, "lllll", "?????"),
        (2, 3, Health::Down, "lsls", "DDDU"),
        (3, 2, Health::Down, "ssrsss", "DDDDDU"),
        // A zero threshold counts as one.
        (0, 0, Health::Up, "rs", "DU"),
    ];
    for (rise, fall, from, results, healths) in cases {
        let mut tally = Tally::new(&check(rise, fall, 1000), from);
        let mut got = String::new();
        for letter in results.chars() {
            let result = match letter {
                's' => Ok(()),
                'r' => Err(Failure::Broken(Cause::ConnectionRefused)),
                '5' => Err(Failure::Status(500)),
                _ => Err(Failure::Broken(Cause::ConnectionLimitReached)),
            };
            let before = tally.health();
            let change = tally.on_event(done(result), CALM);
            assert_eq!(change.is_some(), before != tally.health());
            got.push(match tally.health() {
                Health::Unknown => '?',
                Health::Up => 'U',
                Health::Down => 'D',
            });
        }
        assert_eq!(got, healths, "rise {rise} fall {fall} results {results}");
    }
}

#[test]
fn each_consumer_reads_a_slow_probe_by_its_own_timeout() {
    let mut hasty = Tally::new(&check(2, 1, 100), Health::Up);
    let mut patient = Tally::new(&check(2, 1, 1000), Health::Up);
    let pending = ProbeEvent::Pending { elapsed: ms(100) };
    // This consumer counts a failure at its own timeout, not when the probe ends.
    assert_eq!(hasty.on_event(pending, CALM).map(|c| c.to), Some(Health::Down));
    assert_eq!(patient.on_event(pending, CALM), None);
    let late = ProbeEvent::Done { elapsed: ms(700), result: Ok(()) };
    assert_eq!(hasty.on_event(late, CALM), None);
    assert_eq!(hasty.health(), Health::Down);
    assert_eq!(patient.on_event(late, CALM), None);
    assert_eq!(patient.health(), Health::Up);
    // The next run is counted again.
    assert_eq!(hasty.on_event(done(Ok(())), CALM), None);
    assert_eq!(hasty.on_event(done(Ok(())), CALM).map(|c| c.to), Some(Health::Up));
}

#[test]
fn one_run_counts_once_however_often_it_is_pending() {
    let mut tally = Tally::new(&check(2, 2, 100), Health::Up);
    for elapsed in [50, 100, 200, 300] {
        assert_eq!(tally.on_event(ProbeEvent::Pending { elapsed: ms(elapsed) }, CALM), None);
    }
    let end = ProbeEvent::Done { elapsed: ms(400), result: Err(Failure::Timeout) };
    assert_eq!(tally.on_event(end, CALM), None);
    assert_eq!(tally.failing(), Some((1, Failure::Timeout)));
    // A success that was not announced as pending, but is late: still a failure.
    let late = ProbeEvent::Done { elapsed: ms(101), result: Ok(()) };
    assert_eq!(tally.on_event(late, CALM).map(|c| c.to), Some(Health::Down));
}

#[test]
fn a_busy_server_that_answers_is_not_failed_by_a_timeout() {
    let busy = ServerLoad { at_limit: true, answered_since_start: true };
    let pending = ProbeEvent::Pending { elapsed: ms(1000) };
    let end = ProbeEvent::Done { elapsed: ms(1000), result: Err(Failure::Timeout) };
    let mut tally = Tally::new(&check(2, 3, 1000), Health::Up);
    for _ in 0..10 {
        assert_eq!(tally.on_event(pending, busy), None);
        assert_eq!(tally.on_event(end, busy), None);
    }
    assert_eq!(tally.failing(), None);
    // At its limit but silent, or answering with free slots: the timeout counts.
    for load in [
        ServerLoad { at_limit: true, answered_since_start: false },
        ServerLoad { at_limit: false, answered_since_start: true },
    ] {
        let mut tally = Tally::new(&check(2, 1, 1000), Health::Up);
        assert!(tally.on_event(pending, load).is_some());
    }
    // A refused connection counts even then: it is no sign of waiting.
    let mut tally = Tally::new(&check(2, 1, 1000), Health::Up);
    let refused = Err(Failure::Broken(Cause::ConnectionRefused));
    assert!(tally.on_event(done(refused), busy).is_some());
}

#[test]
fn evidence_reads_well() {
    let mut tally = Tally::new(&check(2, 3, 1000), Health::Up);
    let refused = done(Err(Failure::Broken(Cause::ConnectionRefused)));
    tally.on_event(refused, CALM);
    tally.on_event(refused, CALM);
    let change = tally.on_event(refused, CALM).expect("down");
    assert_eq!(change.evidence.to_string(), "connection refused 3 times");
    tally.on_event(done(Ok(())), CALM);
    let change = tally.on_event(done(Ok(())), CALM).expect("up");
    assert_eq!(change.evidence.to_string(), "2 successes in a row");
    tally.on_event(refused, CALM);
    tally.on_event(refused, CALM);
    let change = tally.on_event(done(Err(Failure::Status(503))), CALM).expect("down");
    assert_eq!(change.evidence.to_string(), "3 failures in a row, the last: status 503");
}

#[test]
fn retuning_keeps_runs_and_forgets_another_probes_timeout() {
    let mut tally = Tally::new(&check(2, 5, 100), Health::Up);
    tally.on_event(ProbeEvent::Pending { elapsed: ms(100) }, CALM);
    tally.retune(&check(2, 2, 100), false);
    let given_up = ProbeEvent::Done { elapsed: ms(50), result: Err(Failure::Timeout) };
    assert_eq!(tally.on_event(given_up, CALM), None);
    assert_eq!(tally.failing(), Some((1, Failure::Timeout)));
    let change = tally.on_event(done(Err(Failure::Status(500))), CALM);
    assert_eq!(change.map(|c| c.to), Some(Health::Down));
}
