//! One iteration of a link's thread: read packets, decide, write what is due.

use std::sync::Arc;

use os::tun::{PACKET_BYTES_MAX, Packets, Tun};

use super::counters::{Counters, Late, Lateness};
use super::facts::Facts;
use super::line::{Due, Line};
use super::path::{Passage, Path, Reason, Verdict};
use super::way::Way;

/// Packets read from one device before the other has its turn.
const BATCH: usize = 64;
/// The second direction has its own random numbers.
const BACK_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Both directions with what they hold.
pub(super) struct Turn {
    devices: [Tun; 2],
    header_bytes: usize,
    paths: [Path; 2],
    lines: [Line; 2],
    counters: Arc<[Counters; 2]>,
    late: Late,
    buffer: Box<[u8]>,
}

impl Turn {
    pub(super) fn new(
        devices: [Tun; 2],
        packets: Packets,
        ways: [Way; 2],
        seed: u64,
        counters: Arc<[Counters; 2]>,
    ) -> Turn {
        let [there, back] = ways;
        Turn {
            devices,
            header_bytes: packets.header_bytes(),
            paths: [Path::new(there, seed), Path::new(back, seed ^ BACK_SEED)],
            lines: <[Line; 2]>::default(),
            counters,
            late: Late::new(),
            buffer: vec![0; PACKET_BYTES_MAX].into_boxed_slice(),
        }
    }

    pub(super) fn set(&mut self, ways: [Way; 2]) {
        for (path, way) in self.paths.iter_mut().zip(ways) {
            path.set(way);
        }
    }

    /// Reads a batch from each device and writes what is due; whether more may be there.
    pub(super) fn take(&mut self) -> bool {
        let mut has_more = false;
        for side in 0..2 {
            has_more |= self.take_from(side);
            self.release(side);
        }
        has_more
    }

    /// When something is due.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.lines.iter().filter_map(Line::next_ns).min()
    }

    pub(super) fn end(&self) -> Lateness {
        self.late.read()
    }

    fn take_from(&mut self, side: usize) -> bool {
        for _ in 0..BATCH {
            let Ok(Some(length)) = self.devices[side].read(&mut self.buffer) else {
                return false;
            };
            // Read after each packet: a batch takes longer than a packet may be late.
            let now_ns = os::clock::nanos();
            self.forward(side, length, now_ns);
        }
        true
    }

    fn forward(&mut self, side: usize, length: usize, now_ns: u64) {
        let Turn { devices, paths, lines, counters, buffer, .. } = self;
        let (to, counters) = (&devices[1 - side], &counters[side]);
        let whole = &buffer[..length];
        let packet = whole.get(self.header_bytes..).unwrap_or_default();
        let facts = Facts::of(packet);
        Counters::add(&counters.packets, 1);
        Counters::add(&counters.bytes, facts.bytes.into());
        Counters::add(&counters.opened, facts.opens.into());
        let passage = match paths[side].decide(facts, now_ns) {
            Verdict::Drop(reason) => return counters.dropped(reason),
            Verdict::Pass(passage) => passage,
        };
        Counters::add(&counters.held_back, (passage.held_ns > 0).into());
        Counters::add(&counters.duplicated, (passage.copies > 1).into());
        let line = &mut lines[side];
        if is_at_once(passage, now_ns) && line.next_ns().is_none_or(|next_ns| next_ns > now_ns) {
            for _ in 0..passage.copies {
                write(to, whole, counters);
            }
            line.passed(&mut |due: Due<'_>| write(to, due.packet, counters), now_ns);
            return;
        }
        for _ in 0..passage.copies {
            if !line.put(whole, passage) {
                counters.dropped(Reason::TooMany);
            }
        }
    }

    fn release(&mut self, side: usize) {
        let Turn { devices, lines, counters, late, .. } = self;
        if lines[side].is_empty() {
            return;
        }
        let (to, counters) = (&devices[1 - side], &counters[side]);
        let now_ns = os::clock::nanos();
        lines[side].release(now_ns, |due| {
            write(to, due.packet, counters);
            late.record(os::clock::nanos().saturating_sub(due.at_ns));
        });
    }
}

fn is_at_once(passage: Passage, now_ns: u64) -> bool {
    passage.behind == 0 && passage.at_ns <= now_ns
}

fn write(to: &Tun, packet: &[u8], counters: &Counters) {
    let counter = if to.write(packet).is_ok() { &counters.delivered } else { &counters.refused };
    Counters::add(counter, 1);
}
