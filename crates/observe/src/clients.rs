//! Which clients send the most requests: the most frequent ones of the last seconds, in fixed memory.
//!
//! Space-Saving (Metwally et al. 2005): a client that is not in a full table takes the place of the least
//! frequent one, with its count. A count is therefore too large by up to a sixteenth of all requests, and
//! no client with more than that share is missed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use model::Moment;

use crate::Counter;
use crate::counters::UNCOUNTED;

/// Seconds that are counted together.
pub const SPAN_S: u64 = 5;

/// Clients in a table.
const CLIENTS: usize = 16;

/// A client: an IPv4 address or, since one host usually has all of it, an IPv6 network of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client(u64);

/// What the upper half of an IPv4 client's number is: no client has an address in `ffff:ffff::/32`.
const IPV4: u64 = 0xffff_ffff << 32;

impl From<IpAddr> for Client {
    fn from(address: IpAddr) -> Client {
        match address.to_canonical() {
            IpAddr::V4(address) => Client(IPV4 | u64::from(address.to_bits())),
            // Zero is an empty place; `::/64` is the loopback address's network.
            IpAddr::V6(address) => Client(((address.to_bits() >> 64) as u64).max(1)),
        }
    }
}

impl std::fmt::Display for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 & IPV4 == IPV4 {
            return write!(f, "{}", Ipv4Addr::from_bits(self.0 as u32));
        }
        let network = if self.0 == 1 { 0 } else { self.0 };
        write!(f, "{}/64", Ipv6Addr::from_bits(u128::from(network) << 64))
    }
}

/// Returns the number of the span of [`SPAN_S`] seconds that a moment is in.
pub fn span_of(now: Moment) -> u64 {
    now.as_micros() / (SPAN_S * 1_000_000)
}

/// One worker's most frequent clients, of this span and the previous one.
#[derive(Debug, Default)]
pub struct FrequentClients([Table; 2]);

#[derive(Debug, Default)]
struct Table {
    span: AtomicU64,
    requests: Counter,
    places: [(AtomicU64, AtomicU64); CLIENTS],
}

/// The most frequent clients of one span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frequent {
    /// All requests.
    pub requests: u64,
    /// The most frequent clients, in no order. A count is too large by at most a sixteenth of
    /// [`Frequent::requests`].
    pub clients: Vec<(Client, u64)>,
}

impl FrequentClients {
    /// Counts a request when it has ended, in the span in which it began, so that those that end together
    /// after an outage do not count as a flood. One that began in an earlier span than the previous one
    /// is not counted. By one thread only.
    #[inline]
    pub fn count(&self, client: IpAddr, begun: Moment) {
        if UNCOUNTED {
            return;
        }
        let span = span_of(begun);
        let table = &self.0[span as usize % 2];
        let counted = table.span.load(Relaxed);
        if counted > span {
            return;
        }
        if counted < span {
            table.begin(span);
        }
        table.requests.increment();
        table.count(Client::from(client).0);
    }

    /// Adds the clients of a span to `into`. Of a span that has not ended, or has just ended, it is what was
    /// counted so far.
    pub fn add_to(&self, span: u64, into: &mut Frequent) {
        let table = &self.0[span as usize % 2];
        if table.span.load(Relaxed) != span {
            return;
        }
        into.requests += table.requests.get();
        for (client, count) in &table.places {
            let (client, count) = (Client(client.load(Relaxed)), count.load(Relaxed));
            if client.0 == 0 || count == 0 {
                continue;
            }
            match into.clients.iter_mut().find(|(known, _)| *known == client) {
                Some((_, sum)) => *sum += count,
                None => into.clients.push((client, count)),
            }
        }
    }
}

impl Table {
    fn begin(&self, span: u64) {
        for (client, count) in &self.places {
            client.store(0, Relaxed);
            count.store(0, Relaxed);
        }
        self.requests.reset();
        self.span.store(span, Relaxed);
    }

    fn count(&self, client: u64) {
        let mut least = (0, u64::MAX);
        for (at, (known, count)) in self.places.iter().enumerate() {
            let so_far = count.load(Relaxed);
            if known.load(Relaxed) == client {
                count.store(so_far + 1, Relaxed);
                return;
            }
            if so_far < least.1 {
                least = (at, so_far);
            }
        }
        let (known, count) = &self.places[least.0];
        known.store(client, Relaxed);
        count.store(least.1 + 1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number))
    }

    fn of_span(clients: &FrequentClients, span: u64) -> Frequent {
        let mut found = Frequent::default();
        clients.add_to(span, &mut found);
        found.clients.sort_by_key(|(client, count)| (std::cmp::Reverse(*count), *client));
        found
    }

    #[test]
    fn a_frequent_client_is_found_among_many() {
        let seed = fastrand::u64(..);
        let mut rng = fastrand::Rng::with_seed(seed);
        let clients = FrequentClients::default();
        let now = Moment::from_millis(12_000);
        for _ in 0..10_000 {
            let number = if rng.u8(0..10) < 4 { 7 } else { rng.u32(100..10_000) };
            clients.count(client(number), now);
        }
        let found = of_span(&clients, span_of(now));
        let (first, count) = found.clients[0];
        assert_eq!((first, found.requests), (Client::from(client(7)), 10_000), "seed {seed}");
        assert!((3_700..4_300 + 10_000 / CLIENTS as u64).contains(&count), "seed {seed}: {count}");
        // All counts together are all requests.
        assert_eq!(found.clients.iter().map(|one| one.1).sum::<u64>(), 10_000);
    }

    #[test]
    fn a_span_is_kept_until_the_one_after_the_next_begins() {
        let clients = FrequentClients::default();
        for second in [0, 4, 5, 9, 14] {
            clients.count(client(second as u32), Moment::from_millis(second * 1_000));
        }
        assert_eq!(of_span(&clients, 0), Frequent::default());
        let numbers = |span| -> Vec<Client> {
            of_span(&clients, span).clients.iter().map(|one| one.0).collect()
        };
        assert_eq!(numbers(1), [client(5), client(9)].map(Client::from));
        assert_eq!(numbers(2), [client(14)].map(Client::from));
    }

    #[test]
    fn clients_are_named_by_address_or_network() {
        for (address, name) in [
            ("203.0.113.9", "203.0.113.9"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
            ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
            ("::1", "::/64"),
        ] {
            assert_eq!(Client::from(address.parse::<IpAddr>().unwrap()).to_string(), name);
        }
    }
}
