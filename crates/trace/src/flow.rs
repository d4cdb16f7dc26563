//! Assigns segments to connections: a bounded table by addresses and ports.
//!
//! As in tshark, tags and tunnels outside the IP header do not distinguish connections.

use foldhash::{HashMap, HashMapExt as _};

use crate::decode::{Address, Segment};

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    /// Its address.
    pub address: Address,
    /// Its port.
    pub port: u16,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::net::SocketAddr::new(self.address.ip(), self.port).fmt(f)
    }
}

/// Both ends, the lower one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends(pub [End; 2]);

impl Ends {
    /// A segment's ends, and which of the two sent it.
    pub fn of(segment: &Segment) -> (Ends, usize) {
        let source = End { address: segment.source, port: segment.source_port };
        let destination = End { address: segment.destination, port: segment.destination_port };
        if source <= destination {
            (Ends([source, destination]), 0)
        } else {
            (Ends([destination, source]), 1)
        }
    }
}

/// Connections by their ends: the newest of those between the same two.
///
/// Found for every packet. The hash is quicker than the standard library's, and seeded by every
/// process, so that a capture cannot be made to fill one bucket.
#[derive(Debug)]
pub(crate) struct Table {
    newest: HashMap<Ends, u32>,
    /// The one that was asked for last: packets come in trains.
    last: Option<(Ends, u32)>,
    connections_max: usize,
}

impl Table {
    pub(crate) fn new(connections_max: usize) -> Table {
        Table { newest: HashMap::new(), last: None, connections_max }
    }

    /// The newest connection between `ends`.
    pub(crate) fn find(&mut self, ends: &Ends) -> Option<u32> {
        if let Some((last, number)) = self.last
            && last == *ends
        {
            return Some(number);
        }
        let number = *self.newest.get(ends)?;
        self.last = Some((*ends, number));
        Some(number)
    }

    /// Whether another may be put in; `count` are there.
    pub(crate) fn has_room(&self, count: usize) -> bool {
        count < self.connections_max
    }

    pub(crate) fn put(&mut self, ends: Ends, number: u32) {
        self.newest.insert(ends, number);
        self.last = Some((ends, number));
    }
}
