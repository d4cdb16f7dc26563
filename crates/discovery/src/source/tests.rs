//! Sources of several parts, and what a reload or a start makes of what was known before.

use std::time::Duration;

use model::{Hold, ListedLimits, ServerSource, ServerSpec, ServerTarget, Standing};

use super::*;
use crate::{Readiness, Refused, Saved};

fn policy() -> Discover {
    Discover {
        source: ServerSource::Consul { service: "web".into(), tag: None },
        port: None,
        limits: ListedLimits::Each,
        hold: Hold { share: 0.5, max: Duration::from_secs(60) },
        saved: true,
        kept_max: Some(Duration::from_secs(100)),
    }
}

fn source(identity: &str, parts: &[&str]) -> ServiceSource {
    let parts = parts.iter().map(|name| Some((*name).into()));
    ServiceSource::new(Arc::new(policy()), identity.into(), parts)
}

fn row(name: &str) -> Row {
    let ip = [10, 0, 0, name.as_bytes()[0]];
    let address = std::net::SocketAddr::from((ip, 80));
    let server = ServerSpec {
        target: ServerTarget::Address(address.into()),
        zone: Some("z1".into()),
        weight: 7,
        backup: false,
        in_flight_max: Some(3),
        version: None,
    };
    Row { server, readiness: Readiness::Ready, object: name.into() }
}

/// The answer `a b`, or none for `-`.
fn report(names: &str) -> Result<(Answer, Option<u64>), String> {
    if names == "-" {
        return Err("no answer".to_owned());
    }
    let rows = names.split_whitespace().map(row).collect();
    Ok((Answer { rows, ..Answer::default() }, Some(7)))
}

/// `a` is listed, `(a)` is a backup, `A` is held.
fn picture(source: &ServiceSource) -> String {
    let shown = source.servers().map(|one| {
        let name = one.listing.object.to_string();
        match (one.listing.standing, one.server.backup) {
            (Standing::Held, _) => name.to_uppercase(),
            (_, true) => format!("({name})"),
            (_, false) => name,
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn at(second: u64) -> Moment {
    Moment::from_millis(second * 1000)
}

#[test]
fn servers_of_further_parts_are_backups() {
    let mut source = source("consul web", &["dc1", "dc2"]);
    // Without servers the first answer applies, although the other part has not been tried.
    source.on_report(0, report("a b"), at(0));
    assert_eq!((picture(&source).as_str(), source.is_tried()), ("a b", false));
    source.on_report(1, report("c a"), at(1));
    assert_eq!((picture(&source).as_str(), source.is_tried()), ("a b (c)", true));
    source.on_report(0, report("b"), at(2));
    assert_eq!(picture(&source), "(a) b (c)");
}

#[test]
fn a_part_that_fails_keeps_its_servers_and_the_others_change() {
    let mut source = source("consul web", &["dc1", "dc2"]);
    source.on_report(0, report("a b"), at(0));
    source.on_report(1, report("c d"), at(0));
    let effect = source.on_report(1, report("-"), at(1));
    assert_eq!(effect.begins_to_fail.as_deref(), Some("datacenter dc2: no answer"));
    assert_eq!(source.on_report(1, report("-"), at(2)).begins_to_fail, None);
    source.on_report(0, report("a e"), at(3));
    assert_eq!(picture(&source), "a (c) (d) e");
    let state = source.state();
    assert_eq!((state.failing_since, state.answered_at), (Some(at(1)), Some(at(3))));
    // kept_max is about a source of which no part answers.
    assert!(!source.tick(at(200)));
    source.on_report(0, report("-"), at(200));
    assert!(!source.tick(at(299)));
    assert!(source.tick(at(300)));
    assert_eq!(picture(&source), "");
    // What was dropped does not come back with the answer of another part.
    assert!(source.on_report(1, report("c"), at(400)).answers_again);
    assert_eq!(picture(&source), "(c)");
}

#[test]
fn a_reload_keeps_the_servers_until_the_new_source_has_answered() {
    let mut before = source("consul web", &["dc1"]);
    before.on_report(0, report("a b c"), at(0));
    before.on_report(0, report(""), at(1));
    assert_eq!(picture(&before), "A B C");

    // The same source with other settings: what is held stays held.
    let mut same = source("consul web", &["dc1"]);
    same.inherit(&before, at(2));
    assert_eq!(picture(&same), "A B C");
    same.on_report(0, report("a"), at(2));
    assert_eq!(picture(&same), "a B C");

    // Another source replaces them, however few it lists.
    let mut other = source("consul web, tag v2", &["dc1"]);
    other.inherit(&before, at(2));
    assert_eq!((picture(&other).as_str(), other.saved()), ("A B C", None));
    other.on_report(0, report("-"), at(3));
    assert_eq!(picture(&other), "A B C");
    other.on_report(0, report("d"), at(4));
    assert_eq!(picture(&other), "d");
    // Once it has answered, it does not look back. An empty answer replaces the servers, too.
    let mut empty = source("consul web, tag v3", &["dc1"]);
    empty.inherit(&before, at(2));
    assert!(empty.on_report(0, report(""), at(3)).outcome.changed);
    assert_eq!(picture(&empty), "");

    // Another list of datacenters: nothing is replaced before the first has answered.
    let mut more = source("consul web dc1 dc2", &["dc1", "dc2"]);
    more.inherit(&before, at(2));
    more.on_report(0, report("-"), at(3));
    more.on_report(1, report("x y z"), at(3));
    assert_eq!(picture(&more), "A B C");
    more.on_report(0, report("a"), at(4));
    assert_eq!(picture(&more), "a (x) (y) (z)");

    // A shorter hold_max counts for those that are held already.
    let short = Discover { hold: Hold { share: 0.5, max: Duration::ZERO }, ..policy() };
    let parts = [Some("dc1".into())];
    let mut short = ServiceSource::new(Arc::new(short), "consul web".into(), parts);
    short.inherit(&before, at(2));
    assert!(short.tick(at(2)));
    assert_eq!(picture(&short), "");

    other.inherit(&before, at(2));
    assert_eq!(picture(&other), "d");
}

#[test]
fn saved_servers_come_back_by_part_and_those_of_another_source_do_not() {
    let mut first = source("consul web", &["dc1", "dc2"]);
    first.on_report(0, report("a b c"), at(0));
    first.on_report(1, report("d"), at(0));
    first.on_report(0, report(""), at(1));
    assert_eq!(picture(&first), "A B C (d)");
    let mut saved = Saved::default();
    saved.services.insert("web".to_owned(), first.saved().unwrap());
    let saved = Saved::parse(&saved.bytes()).unwrap();

    let mut next = source("consul web", &["dc1", "dc2"]);
    next.restore(&saved.services["web"], at(10));
    assert!(next.is_restored() && !next.is_tried());
    assert_eq!(picture(&next), "A B C (d)");
    let one = next.servers().next().unwrap();
    assert_eq!(one.server, row("a").server);
    // One part answers, the other fails: the servers of that stay.
    next.on_report(0, report("a b"), at(11));
    next.on_report(1, report("-"), at(11));
    assert_eq!(picture(&next), "a b C (d)");
    assert!(!next.is_restored());

    let mut other = source("consul web, tag v2", &["dc1", "dc2"]);
    other.restore(&saved.services["web"], at(10));
    assert_eq!(picture(&other), "");
    // What is not a server by the rules of the file is left out.
    let bytes = String::from_utf8(Saved::parse(&saved.bytes()).unwrap().bytes()).unwrap();
    let changed = Saved::parse(bytes.replace("10.0.0.100:80", "unix:/etc/x").as_bytes()).unwrap();
    let mut without = source("consul web", &["dc1", "dc2"]);
    without.restore(&changed.services["web"], at(10));
    assert_eq!(picture(&without), "A B C");
    assert!(Saved::parse(bytes.replace("\"version\":1", "\"version\":2").as_bytes()).is_err());
    assert!(Saved::parse(b"[]").is_err());
}

#[test]
fn an_answer_that_cannot_be_used_counts_as_none() {
    let mut source = source("consul web", &["dc1"]);
    source.on_report(0, report("a"), at(0));
    let refused = Refused { object: "n/b".to_owned(), why: "the service has no port".to_owned() };
    let answer = Answer { refused: vec![refused], refused_count: 3, ..Answer::default() };
    let effect = source.on_report(0, Ok((answer, Some(8))), at(1));
    let why = effect.begins_to_fail.unwrap();
    assert!(why.contains("none of the 3 entries") && why.contains("n/b"), "{why}");
    assert_eq!(picture(&source), "a");
    // A part that does not exist is ignored.
    assert_eq!(source.on_report(9, report("z"), at(2)), Effect::default());
}
