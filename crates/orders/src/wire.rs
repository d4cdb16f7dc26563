//! Messages as bytes.
//!
//! ```text
//! message  version (1)  kind (1)  the rest by kind:
//!   1 orders   flags (1)  row × 0..        flags: 1 the sender wants an acknowledgement
//!   2 got      acknowledged × 0..=33
//!   3 digest   hash (8)  orders (4)
//!   4 parts    flags (1)  hash (8) × 64    flags: 1 the sender has answered parts with these
//! row           counter (8)  start (16)  age, s (4)  state (1)  4 or 6 (1)  IP address (4 or 16)  port (2)
//!               length (1)  service  length (1)  member
//! acknowledged  hash of service and address (8)  counter (8)  start (16)
//! ```
//!
//! Numbers are little-endian. States: 0 ready, 1 drain, 2 maintenance.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use model::{Administrative, ByteReader, Moment};

use crate::order::{MEMBER_BYTES_MAX, Order, ServerKey, Version, is_name};
use crate::table::BUCKETS;

/// The version of this format.
pub const VERSION: u8 = 1;
/// Maximum length of a message, in bytes.
pub const MESSAGE_MAX_BYTES: usize = 1_080;
/// Maximum number of acknowledgements in a message.
pub(crate) const ACKNOWLEDGED_MAX: usize = (MESSAGE_MAX_BYTES - 2) / ACKNOWLEDGED_BYTES;

const ACKNOWLEDGED_BYTES: usize = 32;

const ORDERS: u8 = 1;
const GOT: u8 = 2;
const DIGEST: u8 = 3;
const PARTS: u8 = 4;

const FLAG: u8 = 1;

/// What one member sends to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Orders.
    Orders {
        /// The sender wants to know that they have arrived.
        wants_answer: bool,
        /// The orders.
        rows: Vec<(ServerKey, Order)>,
    },
    /// Orders that the sender has got, or newer ones in their place.
    Got(Vec<Acknowledged>),
    /// The hash of the sender's table, and how many orders it has.
    Digest(u64, u32),
    /// The hashes of the parts of the sender's table.
    Parts {
        /// The sender has compared them with those of the receiver.
        is_answer: bool,
        /// The hashes.
        hashes: Box<[u64; BUCKETS]>,
    },
}

/// An order that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    /// The hash of its server.
    pub(crate) key: u64,
    /// Which order about it.
    pub(crate) version: Version,
}

/// Writes messages with orders, as many of them as fit in so many messages. Returns the messages, and how many orders
/// they have.
pub(crate) fn pack<'a>(
    rows: impl Iterator<Item = (&'a ServerKey, &'a Order)>,
    wants_answer: bool,
    messages_max: usize,
    now: Moment,
) -> (Vec<Vec<u8>>, usize) {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    let mut packed = 0;
    for (key, order) in rows {
        let mut row = Vec::new();
        put_row(key, order, now, &mut row);
        let count = messages.len();
        match messages.last_mut() {
            Some(last) if last.len() + row.len() <= MESSAGE_MAX_BYTES => last.extend(row),
            _ if count == messages_max => break,
            _ => {
                let mut message = vec![VERSION, ORDERS, u8::from(wants_answer) * FLAG];
                message.extend(row);
                messages.push(message);
            }
        }
        packed += 1;
    }
    (messages, packed)
}

fn put_row(key: &ServerKey, order: &Order, now: Moment, into: &mut Vec<u8>) {
    put_version(&order.version, into);
    let age = u32::try_from(order.age(now).as_secs()).unwrap_or(u32::MAX);
    into.extend(age.to_le_bytes());
    into.push(match order.state {
        Administrative::Ready => 0,
        Administrative::Drain => 1,
        Administrative::Maintenance => 2,
    });
    match key.address.ip() {
        IpAddr::V4(ip) => {
            into.push(4);
            into.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            into.push(6);
            into.extend(ip.octets());
        }
    }
    into.extend(key.address.port().to_le_bytes());
    for text in [&key.service, &order.member] {
        // Both are shorter than 256 bytes: checked when the order is made or read.
        let length = u8::try_from(text.len()).unwrap_or(0);
        into.push(length);
        into.extend(text.bytes().take(length.into()));
    }
}

fn put_version(version: &Version, into: &mut Vec<u8>) {
    into.extend(version.counter.to_le_bytes());
    into.extend(version.start);
}

/// Returns the messages that acknowledge these orders.
pub(crate) fn pack_got(orders: &[Acknowledged]) -> Vec<Vec<u8>> {
    let messages = orders.chunks(ACKNOWLEDGED_MAX).map(|orders| {
        let mut message = vec![VERSION, GOT];
        for one in orders {
            message.extend(one.key.to_le_bytes());
            put_version(&one.version, &mut message);
        }
        message
    });
    messages.collect()
}

pub(crate) fn digest(hash: u64, orders: usize) -> Vec<u8> {
    let mut message = vec![VERSION, DIGEST];
    message.extend(hash.to_le_bytes());
    message.extend(u32::try_from(orders).unwrap_or(u32::MAX).to_le_bytes());
    message
}

pub(crate) fn parts(hashes: &[u64; BUCKETS], is_answer: bool) -> Vec<u8> {
    let mut message = vec![VERSION, PARTS, u8::from(is_answer) * FLAG];
    message.extend(hashes.iter().flat_map(|hash| hash.to_le_bytes()));
    message
}

/// Returns the message in `bytes`; `None` if they are none.
pub(crate) fn read(bytes: &[u8], now: Moment) -> Option<Message> {
    if bytes.len() > MESSAGE_MAX_BYTES {
        return None;
    }
    let mut from = ByteReader::new(bytes);
    let [VERSION, kind] = from.array()? else { return None };
    let message = match kind {
        ORDERS => {
            let wants_answer = from.u8()? & FLAG != 0;
            let mut rows = Vec::new();
            while !from.is_empty() {
                rows.push(row(&mut from, now)?);
            }
            Message::Orders { wants_answer, rows }
        }
        GOT => {
            let mut got = Vec::new();
            while !from.is_empty() {
                got.push(Acknowledged { key: from.u64()?, version: version(&mut from)? });
            }
            Message::Got(got)
        }
        DIGEST => Message::Digest(from.u64()?, from.u32()?),
        PARTS => {
            let is_answer = from.u8()? & FLAG != 0;
            let mut hashes = Box::new([0; BUCKETS]);
            for hash in hashes.iter_mut() {
                *hash = from.u64()?;
            }
            Message::Parts { is_answer, hashes }
        }
        _ => return None,
    };
    from.is_empty().then_some(message)
}

fn row(from: &mut ByteReader<'_>, now: Moment) -> Option<(ServerKey, Order)> {
    let version = version(from)?;
    let age = (Duration::from_secs(from.u32()?.into()), now);
    let state = match from.u8()? {
        0 => Administrative::Ready,
        1 => Administrative::Drain,
        2 => Administrative::Maintenance,
        _ => return None,
    };
    let ip = match from.u8()? {
        4 => IpAddr::from(from.array::<4>()?),
        6 => IpAddr::from(from.array::<16>()?),
        _ => return None,
    };
    let address = SocketAddr::new(ip, from.u16()?);
    let key = ServerKey { service: text(from)?, address };
    let member = text(from)?;
    let is_valid = key.is_valid() && is_name(&member, MEMBER_BYTES_MAX);
    is_valid.then_some((key, Order { state, version, member, age }))
}

fn text(from: &mut ByteReader<'_>) -> Option<Arc<str>> {
    let length = from.u8()?;
    let text = from.slice(length.into())?;
    std::str::from_utf8(text).ok().map(Arc::from)
}

fn version(from: &mut ByteReader<'_>) -> Option<Version> {
    Some(Version { counter: from.u64()?, start: from.array()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_millis(5_000);

    fn row(number: u16, service: &str) -> (ServerKey, Order) {
        let ip = if number.is_multiple_of(2) { "10.0.0.1" } else { "2001:db8::1" };
        let address = SocketAddr::new(ip.parse().unwrap(), number);
        let order = Order {
            state: Administrative::ALL[usize::from(number) % 3],
            version: Version { counter: u64::from(number) << 40, start: [number as u8; 16] },
            member: "m".repeat(MEMBER_BYTES_MAX).into(),
            age: (Duration::from_secs(7), NOW),
        };
        (ServerKey { service: service.into(), address }, order)
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        let rows: Vec<_> = (0..30).map(|number| row(number, &"s".repeat(128))).collect();
        let (messages, packed) = pack(rows.iter().map(|(key, order)| (key, order)), true, 100, NOW);
        assert_eq!(packed, rows.len());
        let mut found = Vec::new();
        for message in messages {
            assert!(message.len() <= MESSAGE_MAX_BYTES);
            let Some(Message::Orders { wants_answer: true, rows }) = read(&message, NOW) else {
                panic!("not orders");
            };
            found.extend(rows);
        }
        assert_eq!(found, rows);
        let got = Acknowledged { key: 3, version: Version { counter: 4, start: [5; 16] } };
        let messages = pack_got(&[got; ACKNOWLEDGED_MAX + 1]);
        assert_eq!(messages.len(), 2);
        assert!(messages.iter().all(|message| message.len() <= MESSAGE_MAX_BYTES));
        assert_eq!(read(&messages[1], NOW), Some(Message::Got(vec![got])));
        assert_eq!(read(&digest(1, 2), NOW), Some(Message::Digest(1, 2)));
        let hashes = [9; BUCKETS];
        let sent = parts(&hashes, true);
        assert!(sent.len() <= MESSAGE_MAX_BYTES);
        let read = read(&sent, NOW);
        assert_eq!(read, Some(Message::Parts { is_answer: true, hashes: Box::new(hashes) }));
    }

    #[test]
    fn messages_are_bounded() {
        let rows: Vec<_> = (0..100).map(|number| row(number, "s")).collect();
        let (messages, packed) = pack(rows.iter().map(|(key, order)| (key, order)), false, 2, NOW);
        assert_eq!(messages.len(), 2);
        assert!((10..30).contains(&packed), "{packed}");
    }

    #[test]
    fn what_is_cut_or_too_long_or_of_another_version_is_refused() {
        let rows = [row(1, "web"), row(2, "web")];
        let (messages, _) = pack(rows.iter().map(|(key, order)| (key, order)), true, 1, NOW);
        let parts = parts(&[1; BUCKETS], false);
        for whole in [&messages[0], &pack_got(&[])[..].concat(), &digest(1, 2), &parts] {
            let whole = if whole.is_empty() { &vec![VERSION, GOT] } else { whole };
            assert!(read(whole, NOW).is_some());
            assert_eq!(read(&[&[VERSION + 1], &whole[1..]].concat(), NOW), None);
            assert_eq!(read(&[&whole[..], &[0]].concat(), NOW), None);
        }
        let whole = &messages[0];
        let cuts = (0..whole.len()).filter(|length| read(&whole[..*length], NOW).is_some());
        // Between two rows it is a message with fewer.
        assert_eq!(cuts.count(), 2);
        assert_eq!(read(&[VERSION, 9], NOW), None);
        assert_eq!(read(&[[VERSION, GOT].as_slice(), &[0; 32 * 40]].concat(), NOW), None);
    }

    #[test]
    fn orders_about_what_no_order_can_be_about_are_refused() {
        let wrong = |change: &dyn Fn(&mut ServerKey, &mut Order)| {
            let (mut key, mut order) = row(2, "web");
            change(&mut key, &mut order);
            let (messages, _) = pack([(&key, &order)].into_iter(), true, 1, NOW);
            read(&messages[0], NOW)
        };
        assert!(wrong(&|_, _| {}).is_some());
        assert_eq!(wrong(&|key, _| key.service = "a\nb".into()), None);
        assert_eq!(wrong(&|key, _| key.service = "".into()), None);
        assert_eq!(wrong(&|key, _| key.service = "s".repeat(129).into()), None);
        assert_eq!(wrong(&|key, _| key.address = "127.0.0.1:80".parse().unwrap()), None);
        assert_eq!(wrong(&|_, order| order.member = "\u{1b}[1m".into()), None);
        assert_eq!(wrong(&|_, order| order.member = "m".repeat(65).into()), None);
        let (key, order) = row(2, "web");
        let (mut messages, _) = pack([(&key, &order)].into_iter(), true, 1, NOW);
        messages[0][3 + 24 + 4] = 3;
        assert_eq!(read(&messages[0], NOW), None, "an unknown state");
    }
}
