//! Reassembles fragmented IP packets.

use std::collections::{HashMap, VecDeque};

use super::Address;

/// Packets that wait for their pieces; beyond it the oldest is forgotten.
pub const FRAGMENTED_MAX_PACKETS: usize = 1_024;
/// What waits in all, in bytes; beyond it the oldest is forgotten.
pub const FRAGMENTED_MAX_BYTES: usize = 8 << 20;
/// Maximum number of a packet's fragments. Each carries at least eight bytes, but real packets have far
/// fewer.
const PIECES_MAX: usize = 1_024;
/// An IP packet's length is 16 bits; a piece may not reach beyond.
const PACKET_MAX_BYTES: usize = 65_535;

/// What a header says of a piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) id: u32,
    pub(super) protocol: u8,
    /// Where it begins, in bytes.
    pub(super) offset: usize,
    pub(super) has_more: bool,
}

type Key = (Address, Address, u32, u8);

#[derive(Debug, Default)]
struct Waiting {
    /// Where each begins, and its bytes.
    pieces: Vec<(usize, Vec<u8>)>,
    length: Option<usize>,
    /// Tells it from an earlier packet of the same identification.
    generation: u64,
}

/// The packets that wait.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    waiting: HashMap<Key, Waiting>,
    /// Keys in the order in which they came; some may be done with.
    order: VecDeque<(Key, u64)>,
    generation: u64,
    bytes: usize,
    dropped: u64,
    /// What [`Fragments::add`] put together last.
    whole: Vec<u8>,
}

impl Fragments {
    /// The packet that [`Fragments::add`] has put together; it is handed out once.
    pub(super) fn whole(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.whole)
    }

    /// Pieces that were thrown away.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes a piece; yields whether this was the last that its packet waited for.
    pub(super) fn add(
        &mut self,
        source: Address,
        destination: Address,
        piece: Piece,
        bytes: &[u8],
    ) -> bool {
        let end = piece.offset + bytes.len();
        if end > PACKET_MAX_BYTES {
            self.dropped += 1;
            return false;
        }
        let key = (source, destination, piece.id, piece.protocol);
        if !self.waiting.contains_key(&key) {
            self.make_room(bytes.len());
            self.generation += 1;
            self.order.push_back((key, self.generation));
            let generation = self.generation;
            self.waiting.insert(key, Waiting { generation, ..Waiting::default() });
        }
        let Some(waiting) = self.waiting.get_mut(&key) else { return false };
        if waiting.pieces.len() >= PIECES_MAX {
            self.dropped += 1;
            return false;
        }
        if !piece.has_more {
            waiting.length = Some(end);
        }
        self.bytes += bytes.len();
        waiting.pieces.push((piece.offset, bytes.to_vec()));
        let Some(whole) = waiting.whole() else { return false };
        self.whole = whole;
        self.forget(key);
        true
    }

    fn make_room(&mut self, bytes: usize) {
        while self.waiting.len() >= FRAGMENTED_MAX_PACKETS
            || self.bytes + bytes > FRAGMENTED_MAX_BYTES
            || self.order.len() >= 2 * FRAGMENTED_MAX_PACKETS
        {
            let Some((key, generation)) = self.order.pop_front() else { return };
            if self.waiting.get(&key).is_some_and(|waiting| waiting.generation == generation) {
                self.dropped += self.forget(key);
            }
        }
    }

    /// Forgets a packet; yields how many pieces of it there were.
    fn forget(&mut self, key: Key) -> u64 {
        let Some(waiting) = self.waiting.remove(&key) else { return 0 };
        self.bytes -= waiting.pieces.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        waiting.pieces.len() as u64
    }
}

impl Waiting {
    /// The packet, if nothing is missing. Where pieces overlap, what came first stays.
    fn whole(&mut self) -> Option<Vec<u8>> {
        let length = self.length?;
        let held: usize = self.pieces.iter().map(|(_, bytes)| bytes.len()).sum();
        if held < length {
            return None;
        }
        self.pieces.sort_by_key(|(offset, _)| *offset);
        let mut whole: Vec<u8> = Vec::with_capacity(length);
        for (offset, bytes) in &self.pieces {
            if *offset > whole.len() {
                return None;
            }
            let known = whole.len() - offset;
            whole.extend_from_slice(bytes.get(known..).unwrap_or_default());
        }
        whole.truncate(length);
        (whole.len() == length).then_some(whole)
    }
}
