//! One member: what it sends, charges and allows. Whole fleets are simulated where the workers' table is
//! (`control::fleet::rates`).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use model::{LimitScope, Moment, RateKey, RateLimit, RateReading, RateShare, RateTerms};

use crate::wire::{self, ROWS_MAX, Row};
use crate::{Buckets, MemberAt, Quota, TURN};

const LIMIT: u32 = 7;

/// Workers whose counts a test sets.
#[derive(Default)]
struct Workers {
    readings: Vec<RateReading>,
    charged: Vec<(u64, u32)>,
    terms: HashMap<u64, RateTerms>,
    forgotten: Vec<u64>,
}

impl Workers {
    /// Requests of a key, of which some pass.
    fn count(&mut self, key: u64, offered: u32, taken: u32) {
        let limit = LIMIT;
        if let Some(known) = self.readings.iter_mut().find(|one| one.key == key) {
            known.offered += offered;
            known.taken += taken;
        } else {
            self.readings.push(RateReading { key, limit, offered, taken });
        }
    }
}

impl Buckets for Workers {
    fn readings(&mut self) -> Vec<RateReading> {
        self.readings.clone()
    }

    fn charge(&mut self, _: &RateLimit, key: u64, requests: u32) {
        self.charged.push((key, requests));
    }

    fn set_terms(&mut self, key: u64, terms: RateTerms) {
        self.terms.insert(key, terms);
    }

    fn forget(&mut self, reading: &RateReading) -> bool {
        self.readings.retain(|one| one.key != reading.key);
        self.forgotten.push(reading.key);
        true
    }
}

struct Rig {
    quota: Quota,
    workers: Workers,
    now: Moment,
}

fn address(member: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, member], 7946))
}

fn at(member: u8) -> MemberAt {
    MemberAt { address: address(member), start: [member; 16] }
}

impl Rig {
    /// Member 1 of these, with a limit of 100 per second, 10 at once.
    fn new(others: &[u8]) -> Rig {
        let now = Moment::from_millis(1_000);
        let mut quota = Quota::new(address(1), now);
        quota.set_limits([(
            LIMIT,
            RateLimit {
                name: "a".into(),
                by: RateKey::Client,
                scope: LimitScope::Fleet,
                requests: 100,
                per: Duration::from_secs(1),
                burst: 10,
                wait_max: Duration::ZERO,
                is_announced: false,
            },
        )]);
        quota.set_live(others.iter().copied().map(at));
        Rig { quota, workers: Workers::default(), now }
    }

    fn turn(&mut self) -> Vec<Row> {
        self.now = self.now + TURN;
        let messages = self.quota.turn(&mut self.workers, self.now);
        messages.iter().flat_map(|bytes| wire::read(bytes).expect("a message").1).collect()
    }

    fn hear(&mut self, from: u8, turn: u32, row: Row) {
        let bytes = wire::write(turn, &[row]);
        self.quota.on_message([from; 16], &bytes, &mut self.workers).expect("a message");
    }
}

fn row(total: u32, recent: u32, demand: u32) -> Row {
    Row { key: 1, limit: LIMIT, total, recent, demand }
}

#[test]
fn totals_are_charged_once_whatever_is_lost_or_late() {
    let mut rig = Rig::new(&[2, 3]);
    rig.hear(2, 1, row(1_000, 5, 0));
    rig.hear(2, 2, row(1_004, 4, 0));
    // The next one is lost.
    rig.hear(2, 4, row(1_010, 2, 0));
    // This one is late.
    rig.hear(2, 3, row(1_008, 4, 0));
    rig.hear(3, 9, row(6, 6, 0));
    // The key came into use there again.
    rig.hear(3, 10, row(2, 2, 0));
    rig.hear(3, 11, row(2, 0, 0));
    // Once more: its total is the same by chance.
    rig.hear(3, 12, row(2, 2, 0));
    assert_eq!(rig.workers.charged, [(1, 5), (1, 4), (1, 6), (1, 6), (1, 2), (1, 2)]);
}

#[test]
fn only_members_and_known_limits_count() {
    let mut rig = Rig::new(&[2]);
    rig.hear(9, 1, row(10, 10, 0));
    rig.hear(2, 1, Row { limit: LIMIT + 1, ..row(10, 10, 0) });
    assert_eq!(rig.workers.charged, []);
    assert_eq!(rig.quota.unknown(), 1);
    assert_eq!(rig.quota.keys_of_others(), 0);
    rig.quota.set_limits([]);
    assert_eq!(rig.quota.next_due(), None);
}

#[test]
fn what_passed_is_sent_when_it_matters() {
    let mut rig = Rig::new(&[2]);
    assert_eq!(rig.turn(), []);
    // Fewer than a quarter of `burst`.
    rig.workers.count(1, 2, 2);
    assert_eq!(rig.turn(), []);
    rig.workers.count(1, 1, 1);
    let rows = rig.turn();
    assert_eq!((rows[0].total, rows[0].recent), (3, 3));
    assert_eq!(rig.turn(), []);
    // Many requests that are refused are known as demand, which is repeated.
    let mut sent = 0;
    for _ in 0..40 {
        rig.workers.count(1, 50, 0);
        sent += rig.turn().len();
    }
    assert!((10..35).contains(&sent), "{sent} rows in 40 turns");
    // Alone, nothing is sent, and what passed meanwhile is not sent later.
    rig.quota.set_live([]);
    rig.workers.count(1, 20, 20);
    assert_eq!(rig.turn(), []);
    rig.quota.set_live([at(2)]);
    assert!(rig.turn().iter().all(|row| row.recent == 0));
}

#[test]
fn parts_are_in_proportion_to_the_requests_of_each() {
    let mut rig = Rig::new(&[2]);
    let lag = TURN;
    for turn in 0..40 {
        rig.workers.count(1, 25, 10);
        rig.hear(2, turn, row(0, 0, 300_000));
        rig.turn();
    }
    let terms = rig.workers.terms[&1];
    assert!((terms.share.fraction() - 1.05 * 0.25).abs() < 0.01, "{terms:?}");
    assert_eq!(terms.lag, lag);
    // Together less than the limit: each may take all of it.
    for turn in 40..80 {
        rig.workers.count(1, 5, 5);
        rig.hear(2, turn, row(0, 0, 50_000));
        rig.turn();
    }
    assert_eq!(rig.workers.terms[&1], RateTerms { share: RateShare::WHOLE, lag });
    // A member with few requests may use a part all the same.
    for turn in 80..120 {
        rig.workers.count(1, 1, 0);
        rig.hear(2, turn, row(0, 0, 9_000_000));
        rig.turn();
    }
    assert_eq!(rig.workers.terms[&1].share, RateShare::of(0.125));
    // The other says nothing more, or leaves.
    for _ in 0..13 {
        rig.workers.count(1, 25, 25);
        rig.turn();
    }
    assert_eq!(rig.workers.terms[&1], RateTerms::ALONE);
    rig.hear(2, 121, row(0, 0, 50_000));
    rig.quota.set_live([]);
    rig.turn();
    assert_eq!(rig.workers.terms[&1], RateTerms::ALONE);
}

#[test]
fn the_most_urgent_keys_are_sent_if_there_are_many() {
    let mut rig = Rig::new(&[2]);
    for key in 0..1_000 {
        rig.workers.count(key, 10, 3 + u32::from(key >= 990));
    }
    let rows = rig.turn();
    assert_eq!(rows.len(), 4 * ROWS_MAX);
    assert_eq!(rows.iter().filter(|row| row.key >= 990).count(), 10);
    // The others come later.
    let later: Vec<Row> = (0..6).flat_map(|_| rig.turn()).collect();
    let keys: std::collections::HashSet<u64> =
        rows.iter().chain(&later).map(|row| row.key).collect();
    assert!(keys.len() == 1_000, "{}", keys.len());
}

#[test]
fn a_key_that_is_not_used_is_forgotten_when_it_does_not_matter_any_more() {
    let mut rig = Rig::new(&[2]);
    rig.workers.count(1, 2, 2);
    for _ in 0..12 {
        rig.turn();
    }
    assert_eq!(rig.workers.forgotten, []);
    rig.turn();
    rig.turn();
    assert_eq!(rig.workers.forgotten, [1]);
    rig.workers.count(1, 3, 3);
    assert_eq!(rig.turn()[0].total, 3, "counted from nothing again");
}

#[test]
fn listed_members_that_do_not_answer_keep_their_part() {
    let mut rig = Rig::new(&[2, 3]);
    rig.quota.set_listed((1..=4).map(address).collect());
    rig.turn();
    assert_eq!(rig.quota.side(), RateShare::WHOLE, "they may not have found each other yet");
    for _ in 0..12 {
        rig.turn();
    }
    assert_eq!(rig.quota.side(), RateShare::of(0.75));
    rig.quota.set_live([at(2)]);
    assert_eq!(rig.quota.side(), RateShare::of(0.5));
    assert_eq!(rig.quota.missing(), [address(3), address(4)]);
    // Members need not be listed.
    rig.quota.set_listed([address(2)].into());
    assert_eq!(rig.quota.side(), RateShare::WHOLE);
}
