//! Tests of the learner, one server behaviour and one event at a time; whole runs are in
//! `simulation`.

use super::*;

const KEEP: Duration = Duration::from_mins(1);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Moment {
    Moment::from_millis(millis)
}

fn promise(value: &str) -> Promise {
    Promise::parse(value.as_bytes())
}

fn fresh(learner: &Learner) -> Busy {
    learner.connected(ms(1))
}

fn rest(learner: &Learner, now_ms: u64) -> Idle {
    learner.rest(fresh(learner), Promise::NONE, KEEP, at(now_ms)).expect("to be kept")
}

/// Simulates a connection that is idle from one moment, seen open every 100 ms, until the server
/// closes it.
fn closed_at_age(learner: &Learner, since_ms: u64, age_ms: u64) {
    let mut idle = rest(learner, since_ms);
    for seen in (100..age_ms).step_by(100) {
        learner.saw_open(&mut idle, KEEP, at(since_ms + seen));
    }
    learner.saw_closed(idle, at(since_ms + age_ms));
}

/// Makes several connections open at this age. Ends before `since_ms + age_ms + 3`.
fn seen_open(learner: &Learner, since_ms: u64, age_ms: u64) {
    for n in 0..3 {
        let mut idle = rest(learner, since_ms + n);
        assert!(learner.saw_open(&mut idle, KEEP, at(since_ms + n + age_ms)));
    }
}

/// Returns whether a non-idempotent request would be sent at this idle age.
fn may_post(learner: &Learner, now_ms: u64, age_ms: u64) -> bool {
    learner
        .rest(fresh(learner), Promise::NONE, KEEP, at(now_ms))
        .is_some_and(|idle| learner.may_reuse(&idle, false, KEEP, at(now_ms + age_ms)))
}

#[test]
fn of_a_server_of_which_nothing_is_known_only_repeatable_requests_reuse() {
    let learner = Learner::new();
    let idle = rest(&learner, 0);
    assert!(learner.may_reuse(&idle, true, KEEP, at(59_999)));
    assert!(!learner.may_reuse(&idle, true, KEEP, at(60_000)));
    assert!(!learner.may_reuse(&idle, false, KEEP, at(10)));
    assert_eq!(learner.keep_for(KEEP), KEEP);
    assert_eq!(learner.news(KEEP, at(100)), None);
}

#[test]
fn ages_that_several_connections_came_through_are_safe_less_the_trip() {
    let learner = Learner::new();
    let mut one = rest(&learner, 0);
    for seen in (100..=2_000).step_by(100) {
        assert!(learner.saw_open(&mut one, KEEP, at(seen)));
    }
    assert!(!may_post(&learner, 2_000, 10), "one connection is no evidence");
    let mut two = rest(&learner, 1);
    assert!(learner.saw_open(&mut two, KEEP, at(2_000)));
    assert!(!may_post(&learner, 2_000, 10), "nor are two");
    let mut three = rest(&learner, 1_000);
    assert!(learner.saw_open(&mut three, KEEP, at(2_000)));
    assert!(may_post(&learner, 2_000, 949));
    assert!(!may_post(&learner, 2_000, 950));
    // As they grow older, so does what is safe.
    assert!(learner.saw_open(&mut three, KEEP, at(2_500)));
    assert!(may_post(&learner, 2_500, 1_449));
    assert!(!may_post(&learner, 2_500, 1_450));
    // A close right after the last response could still be on its way.
    assert!(!may_post(&learner, 2_500, 2));
    assert!(may_post(&learner, 2_500, 3));
}

#[test]
fn an_answer_on_a_kept_connection_vouches_for_its_age_whole() {
    let learner = Learner::new();
    for n in 0..3 {
        let idle = rest(&learner, n);
        let busy = learner.take(idle, at(500 + n));
        assert!(busy.reused());
        learner.answered(&busy, at(700 + n));
    }
    assert!(may_post(&learner, 1_000, 499));
    assert!(!may_post(&learner, 1_000, 500));
}

#[test]
fn the_longer_the_way_the_more_is_left_for_it() {
    let learner = Learner::new();
    learner.connected(ms(200));
    seen_open(&learner, 0, 2_000);
    assert!(may_post(&learner, 3_000, 1_500));
    assert!(!may_post(&learner, 3_000, 1_800));
    assert!(!may_post(&learner, 3_000, 40), "a close may be under way for longer");
    for _ in 0..60 {
        learner.connected(ms(1));
    }
    assert!(may_post(&learner, 4_000, 40), "one slow handshake is forgotten");
}

#[test]
fn closes_that_agree_are_a_timeout_and_are_reported_once() {
    let learner = Learner::new();
    seen_open(&learner, 0, 4_900);
    for n in 0..5 {
        assert_eq!(learner.news(KEEP, at(5_000 + n * 1_000)), None);
        closed_at_age(&learner, 5_000 + n * 1_000, 5_000 + n * 7);
        assert!(!may_post(&learner, 10_100 + n * 1_000, 1_000) || n == 4, "what is it up to?");
    }
    let now_ms = 20_000;
    let reported = learner.news(KEEP, at(now_ms)).expect("news");
    assert_eq!(reported.to_string(), "closes idle connections at 5.0 s; pool kept to 4.0 s");
    assert_eq!(learner.news(KEEP, at(now_ms)), None);
    assert_eq!(learner.view(KEEP), reported);
    assert_eq!(learner.keep_for(ms(3_000)), ms(3_000), "never above what is configured");
    let kept = reported.kept.as_millis() as u64;
    assert!(may_post(&learner, now_ms, kept - 1));
    let idle = rest(&learner, now_ms);
    assert!(!learner.may_reuse(&idle, true, KEEP, at(now_ms + kept)));
    // More of the same is not news.
    closed_at_age(&learner, now_ms, 5_100);
    assert_eq!(learner.news(KEEP, at(now_ms + 10_000)), None);
}

#[test]
fn a_promise_is_believed_less_a_fifth_until_it_is_broken() {
    let learner = Learner::new();
    let rest = |value, now| learner.rest(fresh(&learner), promise(value), KEEP, at(now));
    let idle = rest("timeout=5, max=100", 0).unwrap();
    assert!(learner.may_reuse(&idle, false, KEEP, at(3_999)));
    assert!(!learner.may_reuse(&idle, false, KEEP, at(4_000)));
    assert!(!learner.may_reuse(&idle, true, KEEP, at(4_000)), "nor is it kept for longer");
    let reported = learner.news(KEEP, at(100)).map(|view| view.to_string());
    let text = "promises to keep idle connections for 5.0 s; pool kept to 4.0 s";
    assert_eq!(reported.as_deref(), Some(text));
    assert!(rest("timeout=0", 0).is_none());
    assert!(rest("timeout=5, max=0", 0).is_none());

    let mut broken = rest("timeout=5", 1_000).unwrap();
    assert!(learner.saw_open(&mut broken, KEEP, at(2_900)));
    learner.saw_closed(broken, at(3_000));
    let idle = rest("timeout=5", 3_000).unwrap();
    assert!(!learner.may_reuse(&idle, false, KEEP, at(3_100)));
    assert!(learner.may_reuse(&idle, true, KEEP, at(3_100)));
}

#[test]
fn after_at_once_closes_one_by_one_nothing_is_kept_but_observers_until_they_last() {
    let learner = Learner::new();
    for n in 0..3 {
        learner.saw_closed(rest(&learner, n * 200), at(n * 200 + 30));
    }
    assert_eq!(learner.keep_for(KEEP), Duration::ZERO);
    let reported = learner.news(KEEP, at(1_000)).unwrap();
    assert_eq!(reported.habit, Habit::ClosesAtOnce);

    let mut observers = 0;
    for second in 1..=120 {
        let now_ms = second * 1_000;
        let Some(mut idle) = learner.rest(fresh(&learner), Promise::NONE, KEEP, at(now_ms)) else {
            continue;
        };
        if !idle.is_observer() {
            assert!(second > 60, "believed too soon");
            assert!(observers >= 3);
            assert_eq!(learner.keep_for(KEEP), KEEP);
            return;
        }
        observers += 1;
        assert!(!learner.may_reuse(&idle, true, KEEP, at(now_ms + 10)), "observers carry nothing");
        assert!(learner.saw_open(&mut idle, KEEP, at(now_ms + 100)));
        assert!(!learner.saw_open(&mut idle, KEEP, at(now_ms + 900)), "it has seen enough");
    }
    panic!("{observers} observers did not convince");
}

#[test]
fn many_closed_at_once_at_different_ages_are_a_restart() {
    let learner = Learner::new();
    seen_open(&learner, 0, 4_000);
    let mut old = rest(&learner, 9_900);
    let busy_before = fresh(&learner);
    for since in [2_000, 5_000, 9_000] {
        let mut idle = rest(&learner, since);
        learner.saw_open(&mut idle, KEEP, at(9_950));
        learner.saw_closed(idle, at(10_000));
    }
    assert!(!may_post(&learner, 10_000, 100));
    // No check until the burst is over.
    assert!(!learner.saw_open(&mut old, KEEP, at(10_400)), "what is left from before is closed");
    assert_eq!(learner.view(KEEP).habit, Habit::Unknown);
    assert!(learner.rest(busy_before, Promise::NONE, KEEP, at(10_500)).is_none());
    assert!(!may_post(&learner, 10_500, 100), "learning restarts");
    seen_open(&learner, 11_000, 1_000);
    assert!(may_post(&learner, 12_100, 900));
    assert_eq!(learner.news(KEEP, at(13_000)), None);
}

#[test]
fn closed_at_once_at_one_age_is_a_timeout_and_beside_a_survivor_an_oddity() {
    let learner = Learner::new();
    for n in 0..6 {
        let mut idle = rest(&learner, 1_000 + n * 10);
        learner.saw_open(&mut idle, KEEP, at(5_950));
        learner.saw_closed(idle, at(6_050));
    }
    let reported = learner.news(KEEP, at(7_000)).unwrap();
    assert!(matches!(reported.habit, Habit::ClosesAt { .. }), "{reported}");

    let learner = Learner::new();
    let mut survivor = rest(&learner, 0);
    for since in [2_000, 5_000, 6_000, 7_000, 9_000] {
        let mut idle = rest(&learner, since);
        learner.saw_open(&mut idle, KEEP, at(9_950));
        learner.saw_closed(idle, at(10_000));
    }
    assert!(learner.saw_open(&mut survivor, KEEP, at(10_200)), "still a witness");
    assert!(!learner.saw_open(&mut survivor, KEEP, at(10_400)), "it is too old for such a server");
    let reported = learner.news(KEEP, at(10_500)).unwrap();
    assert!(matches!(reported.habit, Habit::Erratic { .. }), "{reported}");
    assert!(!may_post(&learner, 11_000, 100));
}

#[test]
fn a_restart_that_was_seen_ends_what_was_learned_and_what_was_open() {
    let learner = Learner::new();
    seen_open(&learner, 0, 1_000);
    let mut idle = rest(&learner, 1_000);
    let busy = learner.take(rest(&learner, 1_000), at(1_100));
    learner.restarted(at(1_200));
    assert!(!learner.may_reuse(&idle, true, KEEP, at(1_300)));
    assert!(!learner.saw_open(&mut idle, KEEP, at(1_300)));
    // The old server's connections say nothing about the new one.
    learner.answered(&busy, at(1_300));
    learner.failed(&busy, at(1_150));
    assert!(learner.rest(busy, Promise::NONE, KEEP, at(1_300)).is_none());
    assert!(!may_post(&learner, 1_300, 100));
    // A server that is down refuses many connections.
    let fresh = fresh(&learner);
    learner.restarted(at(1_400));
    assert!(learner.rest(fresh, Promise::NONE, KEEP, at(1_500)).is_some());
}

#[test]
fn only_a_failure_right_behind_the_request_is_a_close() {
    let learner = Learner::new();
    seen_open(&learner, 0, 5_000);
    let busy = learner.take(rest(&learner, 5_000), at(6_000));
    learner.failed(&busy, at(9_000));
    assert!(may_post(&learner, 10_000, 1_000), "it died of the request");
    learner.failed(&fresh(&learner), at(10_000));
    assert!(may_post(&learner, 10_000, 1_000), "it was never idle");
    learner.failed(&busy, at(6_001));
    assert!(!may_post(&learner, 10_000, 1_000));
}

#[test]
fn evidence_of_long_ago_is_forgotten() {
    let learner = Learner::new();
    seen_open(&learner, 0, 5_000);
    let mut idle = rest(&learner, 299_000);
    learner.saw_open(&mut idle, KEEP, at(300_000));
    assert!(may_post(&learner, 300_000, 4_000), "the last five minutes count");
    let mut idle = rest(&learner, 600_000);
    learner.saw_open(&mut idle, KEEP, at(600_100));
    assert!(!may_post(&learner, 600_100, 4_000));
}

#[test]
fn workers_share_what_they_see() {
    let learner = Learner::new();
    std::thread::scope(|scope| {
        for worker in 0..4_u64 {
            let learner = &learner;
            scope.spawn(move || {
                for n in 0..2_000 {
                    let since = n * 20 + worker;
                    let mut idle = rest(learner, since);
                    assert!(learner.saw_open(&mut idle, KEEP, at(since + 300)));
                    let busy = learner.take(idle, at(since + 310));
                    learner.answered(&busy, at(since + 311));
                    let _ = learner.news(KEEP, at(since + 312));
                }
            });
        }
    });
    assert!(may_post(&learner, 50_000, 309));
    assert!(!may_post(&learner, 50_000, 310));
}
