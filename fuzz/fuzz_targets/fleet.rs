//! Any bytes as what another member of a fleet sends. The first byte chooses: `d` a datagram as it comes from the
//! network, `m` a message about members, `c` results of health checks, `s` messages about servers' slots, `r` counts
//! for rate limits, `o` states of servers for the whole fleet, `t` which keys of session tickets it has, `a` which
//! certificates; all but the first as from a holder of the key.
#![no_main]

use std::sync::Arc;
use std::time::Duration;

use fleet::seal::{self, Opener, PAYLOAD_MAX};
use fleet::{MEMBERS_MAX, Member, Membership, Message, Output, StartId};
use health::shared::assignment;
use health::shared::exchange::Exchange;
use health::shared::wire::{self, ENTRIES_MAX};
use keyring::certificates::{Catalogue, Certificates, Fetched};
use keyring::{KEYS_MAX, Key, Keyring};
use lend::{Lending, MemberAt, SLOTS_MAX, ServerLimit, Slots, Usage};
use libfuzzer_sys::fuzz_target;
use model::{
    CertificateId, CertificateOwner, LimitScope, Moment, RateKey, RateLimit, RateReading, RateTerms,
};
use orders::{ORDERS_MAX, Orders, Peer, ServerKey};
use quota::{Buckets, Quota, TURN};

/// Messages that one datagram can cause at once.
const ANSWERS_MAX: usize = 64;

fuzz_target!(|data: &[u8]| {
    let Some((&kind, data)) = data.split_first() else { return };
    match kind {
        b'd' => datagram(data),
        b'm' => membership(data),
        b'c' => checks(data),
        b's' => slots(data),
        b'r' => rates(data),
        b'o' => orders(data),
        b't' => ticket_keys(data),
        b'a' => certificates(data),
        _ => {}
    }
});

fn datagram(data: &[u8]) {
    let key = seal::Key::from_secret(b"a secret of 32 bytes, or of more").expect("long enough");
    let mut opener = Opener::new(&[key]).expect("one key");
    let mut opened = Vec::new();
    assert!(opener.open(data, &mut opened).is_err(), "nothing is sealed by chance");
    assert_eq!(opener.senders(), 0);
}

fn member(number: u8) -> Member {
    let name: Arc<str> = format!("m{number}").into();
    Member {
        address: ([10, 0, 0, number], 7946).into(),
        zone: None,
        host: Arc::clone(&name),
        name,
        start: StartId([number; StartId::BYTES]),
        version: 1,
    }
}

fn membership(data: &[u8]) {
    let at = Moment::from_millis;
    let mut membership = Membership::new(member(1), 1, 1, at(0)).expect("a valid member");
    // Several messages, each after its length.
    let mut rest = data;
    let mut now = 0;
    while let Some((&length, after)) = rest.split_first() {
        let (message, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        now += 300;
        if let Some(Message::Membership(bytes)) = Message::read(message) {
            membership.on_datagram(bytes, at(now));
        } else {
            membership.on_datagram(message, at(now));
        }
        if membership.next_due().is_some_and(|due| due <= at(now)) {
            membership.on_timer(at(now));
        }
        let mut sent = 0;
        while let Some(output) = membership.next_output() {
            if let Output::Send { payload, .. } = output {
                assert!(payload.len() <= PAYLOAD_MAX);
                sent += 1;
            }
        }
        assert!(sent <= ANSWERS_MAX, "{sent} messages");
        assert!(membership.members().len() <= MEMBERS_MAX);
    }
}

fn checks(data: &[u8]) {
    let own = |name: &str| assignment::Member {
        name: name.into(),
        zone: None,
        host: name.into(),
        start: 1,
    };
    let mut exchange = Exchange::new(&[[7; 32]], own("a"), 2);
    let now = Moment::from_millis(1_000);
    exchange.set_members([own("b")].into_iter(), now);
    if let Ok(entries) = wire::decode(data) {
        for (_, heard) in entries {
            assert!(heard.in_a_row >= 1);
            assert!(heard.elapsed <= Duration::from_micros(u32::MAX.into()));
        }
    }
    let received = exchange.on_batch("b", 1, data, now).unwrap_or_default();
    assert!(received.len() <= ENTRIES_MAX);
}

/// A server's slots, half of which are in use at any time.
struct Half(u32);

impl Slots for Half {
    fn usage(&mut self, _: usize) -> Usage {
        Usage { allowed: self.0, in_flight: self.0 / 2, waiting: 3 }
    }

    fn allow(&mut self, _: usize, allowed: u32) -> u32 {
        assert!(allowed <= SLOTS_MAX);
        std::mem::replace(&mut self.0, allowed) / 2
    }
}

fn slots(data: &[u8]) {
    const MAX: u32 = 9;
    let at = Moment::from_millis;
    let member =
        |number: u8| MemberAt { address: ([10, 0, 0, number], 7946).into(), start: [number; 16] };
    let mut lending = Lending::new(member(1), at(0));
    lending.set_live(&[member(2)], at(0));
    let limit = ServerLimit { key: 1, max: MAX, request_max: Duration::from_secs(1) };
    lending.set_servers(&[limit], at(0));
    let mut half = Half(0);
    // Several messages, each after its length.
    let (mut rest, mut now) = (data, 0);
    while let Some((&length, after)) = rest.split_first() {
        let (message, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        now += 300;
        // What is no message is refused.
        let _ = lending.on_message(member(2), message, at(now));
        for (_, bytes) in lending.turn(&mut half, at(now)) {
            assert!(bytes.len() <= lend::wire::MESSAGE_MAX_BYTES);
        }
        assert!(half.0 <= MAX);
        let standing = lending.standing(0);
        assert!(standing.share <= MAX, "{standing:?}");
    }
}

fn orders(data: &[u8]) {
    let at = Moment::from_millis;
    let peer = |number: u8| Peer {
        name: format!("m{number}").into(),
        address: ([10, 0, 0, number], 7946).into(),
        start: [number; 16],
    };
    let mut orders = Orders::new(peer(1), Vec::new(), at(0));
    orders.set_live([peer(2)].into_iter(), at(0));
    let key = ServerKey { service: "web".into(), address: ([10, 0, 1, 1], 80).into() };
    orders.make(key.clone(), model::Administrative::Drain, at(0)).expect("room");
    // Several messages, each after its length.
    let (mut rest, mut now) = (data, 0);
    while let Some((&length, after)) = rest.split_first() {
        let (message, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        now += 300;
        // What is no message is refused.
        let answers = orders.on_message([2; 16], message, at(now)).unwrap_or_default().answers;
        let turn = orders.turn(at(now)).into_iter().map(|(_, bytes)| bytes);
        let messages: Vec<Vec<u8>> = answers.into_iter().chain(turn).collect();
        assert!(messages.len() <= ANSWERS_MAX);
        assert!(messages.iter().all(|bytes| bytes.len() <= orders::wire::MESSAGE_MAX_BYTES));
        assert!(orders.iter().count() <= ORDERS_MAX);
        assert!(orders.confirmation(&[key.clone()]).unconfirmed.len() <= 1);
    }
    // The next order of this member is newer than all.
    let made = orders.make(key.clone(), model::Administrative::Ready, at(now)).expect("known");
    let (_, order) = orders.iter().find(|(one, _)| **one == key).expect("it was made");
    assert_eq!((order.state, order.version), (model::Administrative::Ready, made));
}

fn ticket_keys(data: &[u8]) {
    let at = Moment::from_millis;
    let peer = |number: u8| keyring::Peer {
        name: format!("m{number}").into(),
        address: ([10, 0, 0, number], 7946).into(),
        start: [number; 16],
    };
    let mut ring = Keyring::new([1; 16], at(0));
    ring.set_live([peer(2), peer(3)], at(0));
    // Several messages, each after its sender and its length.
    let (mut rest, mut now) = (data, 0);
    while let Some(([from, length], after)) = rest.split_first_chunk() {
        let (message, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        now += 500 * u64::from(*from);
        let from = [2 + from % 3; 16];
        // What is no message is refused.
        let _ = ring.on_message(from, message, at(now));
        let turn = ring.turn(at(now));
        let sent = turn.message.unwrap_or_default();
        assert!(sent.len() <= keyring::wire::MESSAGE_MAX_BYTES);
        if let Some(asked) = ring.fetch(at(now)) {
            // It has what it said, or nothing.
            match keyring::wire::read(message) {
                Ok(keys) => {
                    let key = |(name, age)| Key { name, age: (age, at(now)) };
                    ring.fetched(asked.start, keys.into_iter().map(key), at(now));
                }
                Err(_) => ring.not_fetched(asked.start, at(now)),
            }
        }
        if turn.must_make {
            ring.make([now as u8; 16], at(now));
        }
        assert!(ring.iter().count() <= KEYS_MAX);
        assert!(ring.seals().is_none_or(|name| ring.has(&name)));
    }
}

/// Workers at which the same requests of a few keys come in each turn.
struct Few(Vec<RateReading>);

impl Buckets for Few {
    fn readings(&mut self) -> Vec<RateReading> {
        self.0.clone()
    }

    fn charge(&mut self, limit: &RateLimit, _: u64, requests: u32) {
        assert!(limit.requests == 100 && requests > 0);
    }

    fn set_terms(&mut self, _: u64, terms: RateTerms) {
        assert!(terms.share.fraction() > 0.05 && terms.lag <= TURN, "{terms:?}");
    }

    fn forget(&mut self, reading: &RateReading) -> bool {
        self.0.retain(|one| one.key != reading.key);
        true
    }
}

fn rates(data: &[u8]) {
    let at = Moment::from_millis;
    let member = |number: u8| quota::MemberAt {
        address: ([10, 0, 0, number], 7946).into(),
        start: [number; 16],
    };
    let mut quota = Quota::new(member(1).address, at(0));
    quota.set_live([member(2), member(3)]);
    let limit = RateLimit {
        name: "a".into(),
        by: RateKey::Client,
        scope: LimitScope::Fleet,
        requests: 100,
        per: Duration::from_secs(1),
        burst: 10,
        wait_max: Duration::ZERO,
        is_announced: false,
    };
    quota.set_limits([(0, limit)]);
    let reading = |key| RateReading { key, ..RateReading::default() };
    let mut few = Few((0..3).map(reading).collect());
    // Several messages, each after its length.
    let (mut rest, mut now) = (data, 0);
    while let Some((&length, after)) = rest.split_first() {
        let (message, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        now += 250;
        // What is no message is refused.
        let _ = quota.on_message([2 + length % 2; 16], message, &mut few);
        for reading in &mut few.0 {
            reading.offered = reading.offered.wrapping_add(30);
            reading.taken = reading.taken.wrapping_add(10);
        }
        for bytes in quota.turn(&mut few, at(now)) {
            assert!(bytes.len() <= quota::wire::MESSAGE_MAX_BYTES);
            assert!(quota::wire::read(&bytes).is_ok());
        }
    }
}

/// Two members send messages, and what is fetched from them is what they say.
fn certificates(data: &[u8]) {
    let at = Moment::from_millis;
    let peer = |number: u8| keyring::Peer {
        name: format!("m{number}").into(),
        address: ([10, 0, 0, number], 7946).into(),
        start: [number; 16],
    };
    let mut one = Certificates::new([2; 16], at(0));
    let id = CertificateId([1; 16]);
    one.set_catalogue(Catalogue { digest: [1; 16], entries: [(id, None)].into() }, at(0));
    one.set_live([peer(1), peer(3)], at(0));
    let (mut rest, mut now) = (data, 0);
    while let Some((&length, after)) = rest.split_first() {
        let (message, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        now += 300;
        let from = [if length % 2 == 0 { 1 } else { 3 }; 16];
        let _ = one.on_message(from, message, at(now));
        while let Some(peer) = one.fetch(at(now)) {
            let catalogue = Catalogue { digest: [length; 16], entries: [(id, None)].into() };
            let challenges = u64::from(length);
            let fetched = Fetched { catalogue, challenges, received: Vec::new() };
            one.fetched(peer.start, fetched, at(now));
        }
        if let Some(message) = one.turn(at(now)) {
            assert!(message.len() <= keyring::certificates::wire::MESSAGE_MAX_BYTES);
        }
        let owner = one.owner(&id, at(now));
        // Whether it is to order itself is not known so early.
        assert!(now >= 3_000 || owner != CertificateOwner::Own);
    }
}
