//! Packets in transit: kept until they are due, in order of arrival.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::path::Passage;

/// Packets of one direction that are kept at most.
const PACKETS_MAX: usize = 131_072;
/// Buffers that are kept for reuse, whatever their size.
const SPARE_MAX: usize = 4_096;
/// Packets that can be held back at a time; further ones keep their order.
const HELD_MAX: usize = 1_024;

/// Packets of one direction.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// By time, then in order of coming.
    due: BinaryHeap<Reverse<(u64, u64, usize)>>,
    held: Vec<Held>,
    packets: Vec<Vec<u8>>,
    free: Vec<usize>,
    came: u64,
}

#[derive(Debug)]
struct Held {
    /// Others that must still go by.
    behind: u32,
    until_ns: u64,
    packet: usize,
}

/// A packet that must be written now.
pub(super) struct Due<'a> {
    pub(super) packet: &'a [u8],
    /// When it should have been.
    pub(super) at_ns: u64,
}

impl Line {
    /// Whether nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty() && self.held.is_empty()
    }

    /// Keeps a packet; `false` when there are too many.
    pub(super) fn put(&mut self, packet: &[u8], passage: Passage) -> bool {
        if self.due.len() + self.held.len() >= PACKETS_MAX {
            return false;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.packets.push(Vec::new());
            self.packets.len() - 1
        });
        self.packets[place].clear();
        self.packets[place].extend_from_slice(packet);
        if passage.behind > 0 && self.held.len() < HELD_MAX {
            let until_ns = passage.at_ns.saturating_add(passage.held_ns);
            self.held.push(Held { behind: passage.behind, until_ns, packet: place });
        } else {
            self.came += 1;
            self.due.push(Reverse((passage.at_ns, self.came, place)));
        }
        true
    }

    /// When the next packet is due.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let due = self.due.peek().map(|Reverse((at_ns, ..))| *at_ns);
        let held = self.held.iter().map(|held| held.until_ns).min();
        due.into_iter().chain(held).min()
    }

    /// A packet has gone by without being kept here.
    pub(super) fn passed(&mut self, write: &mut impl FnMut(Due<'_>), now_ns: u64) {
        if self.held.is_empty() {
            return;
        }
        for held in &mut self.held {
            held.behind = held.behind.saturating_sub(1);
        }
        self.release_held(write, now_ns);
    }

    /// Hands over every packet whose time has come.
    pub(super) fn release(&mut self, now_ns: u64, mut write: impl FnMut(Due<'_>)) {
        while let Some(Reverse((at_ns, _, place))) = self.due.peek().copied()
            && at_ns <= now_ns
        {
            self.due.pop();
            write(Due { packet: &self.packets[place], at_ns });
            self.give_back(place);
            self.passed(&mut write, now_ns);
        }
        self.release_held(&mut write, now_ns);
    }

    fn release_held(&mut self, write: &mut impl FnMut(Due<'_>), now_ns: u64) {
        let mut index = 0;
        while let Some(held) = self.held.get(index) {
            if held.behind > 0 && held.until_ns > now_ns {
                index += 1;
                continue;
            }
            let held = self.held.remove(index);
            write(Due { packet: &self.packets[held.packet], at_ns: held.until_ns.min(now_ns) });
            self.give_back(held.packet);
        }
    }

    fn give_back(&mut self, place: usize) {
        if self.free.len() >= SPARE_MAX {
            self.packets[place] = Vec::new();
        }
        self.free.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_ns: u64) -> Passage {
        Passage { at_ns, behind: 0, held_ns: 0, copies: 1 }
    }

    fn released(line: &mut Line, now_ns: u64) -> Vec<u8> {
        let mut out = Vec::new();
        line.release(now_ns, |due| out.push(due.packet[0]));
        out
    }

    #[test]
    fn packets_come_by_time_and_then_in_order_of_coming() {
        let mut line = Line::default();
        for (packet, at_ns) in [(1, 50), (2, 20), (3, 50), (4, 90)] {
            assert!(line.put(&[packet], at(at_ns)));
        }
        assert_eq!(line.next_ns(), Some(20));
        assert!(released(&mut line, 19).is_empty());
        assert_eq!(released(&mut line, 50), [2, 1, 3]);
        assert_eq!(line.next_ns(), Some(90));
        assert_eq!(released(&mut line, 100), [4]);
        assert!(line.is_empty());
    }

    #[test]
    fn a_packet_held_back_lets_so_many_by_and_no_more() {
        let mut line = Line::default();
        line.put(&[1], Passage { at_ns: 10, behind: 2, held_ns: 1_000, copies: 1 });
        for packet in 2..=5 {
            line.put(&[packet], at(10));
        }
        assert_eq!(released(&mut line, 10), [2, 3, 1, 4, 5]);
    }

    #[test]
    fn a_packet_held_back_does_not_wait_for_ever() {
        let mut line = Line::default();
        line.put(&[1], Passage { at_ns: 10, behind: 9, held_ns: 1_000, copies: 1 });
        assert_eq!(line.next_ns(), Some(1_010));
        assert!(released(&mut line, 1_009).is_empty());
        assert_eq!(released(&mut line, 1_010), [1]);
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let mut line = Line::default();
        for _ in 0..PACKETS_MAX {
            assert!(line.put(&[0], at(5)));
        }
        assert!(!line.put(&[0], at(5)));
        assert_eq!(released(&mut line, 5).len(), PACKETS_MAX);
        assert!(line.put(&[0], at(5)));
    }
}
