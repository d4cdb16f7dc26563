//! Results that waited for a process that did not run.

use std::sync::Arc;
use std::time::Duration;

use model::{Address, CheckKind, HttpVersion, Moment, ProbeIdentity, ProbeSpec};

use super::check;
use crate::plan::{Consumer, ConsumerId, Plan, ProbeId};
use crate::shared::assignment::Member;
use crate::shared::exchange::{Exchange, Received};

fn member(name: &str) -> Member {
    Member { name: name.into(), zone: None, host: name.into(), start: 1 }
}

fn plan() -> Plan {
    let spec =
        ProbeSpec { kind: CheckKind::Tcp, tls: None, http: HttpVersion::Http11, send_proxy: None };
    let address = Address::Ip(([10, 0, 0, 1], 80).into());
    let consumer = Consumer {
        id: ConsumerId(1),
        service: "web".into(),
        check: Arc::new(check(2, 3)),
        probe: Arc::new(ProbeIdentity { address, spec }),
    };
    Plan::new(vec![consumer], Moment::ZERO, fastrand::Rng::with_seed(1))
}

/// A member that knows another, and the probe of the only server.
fn one(name: &str, other: &str, plan: &Plan) -> (Exchange, ProbeId) {
    let mut exchange = Exchange::new(&[[7; 32]], member(name), 2);
    exchange.follow(plan.probes(), Moment::ZERO);
    exchange.set_members([member(other)].into_iter(), Moment::ZERO);
    (exchange, plan.probes().next().expect("a probe").id)
}

/// Returns what `b` reads of a result of `a` that waits while `b` does not run for some time.
fn read_after(stopped: Duration) -> Vec<Received> {
    let plan = plan();
    let (mut a, id) = one("a", "b", &plan);
    let (mut b, _) = one("b", "a", &plan);
    for n in 0..40 {
        b.batches(Moment::from_millis(n * 250));
    }
    let sent = Moment::from_millis(9_800);
    a.on_own(id, Duration::from_millis(5), Ok(()), Moment::from_millis(9_750));
    let batch = a.batches(sent).pop().expect("a result");
    let now = Moment::from_millis(9_750) + stopped;
    b.on_batch("a", 1, &batch, now).expect("a batch")
}

#[test]
fn a_result_that_waited_while_the_process_was_stopped_is_as_old_as_that() {
    let age = |stopped| read_after(stopped).first().map(|one| one.heard.age_at_sending);
    let ms = Duration::from_millis;
    assert_eq!(age(ms(300)), Some(ms(50)));
    assert_eq!(age(ms(1_500)), Some(ms(1_550)));
    assert_eq!(age(ms(5_000)), None, "stale");
}

#[test]
fn what_arrives_later_is_as_old_as_it_says() {
    let plan = plan();
    let (mut a, id) = one("a", "b", &plan);
    let (mut b, _) = one("b", "a", &plan);
    b.batches(Moment::ZERO);
    b.batches(Moment::from_millis(60_000));
    a.on_own(id, Duration::from_millis(5), Ok(()), Moment::from_millis(60_250));
    let now = Moment::from_millis(60_300);
    let batch = a.batches(now).pop().expect("a result");
    let received = b.on_batch("a", 1, &batch, now).expect("a batch");
    assert_eq!(received.first().map(|one| one.heard.age_at_sending.as_millis()), Some(50));
}
