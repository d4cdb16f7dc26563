//! The state that tshark keeps for one direction of a connection.

use std::collections::VecDeque;

use super::Flags;
use super::serial::is_after;

/// Segments that tshark remembers until they are acknowledged (its `TCP_MAX_UNACKED_SEGMENTS`).
/// Beyond it, SYN and FIN do not count as a byte.
const UNACKNOWLEDGED_MAX_SEGMENTS: usize = 10_000;

/// What a direction's window is shifted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// No handshake was seen.
    Unknown,
    /// A handshake was seen, without it.
    None,
    By(u8),
}

/// One direction. Sequence numbers of 0 mean "not known", as in tshark.
#[derive(Debug)]
pub(super) struct Side {
    /// Behind the highest byte sent.
    pub(super) next: u32,
    /// Behind the highest byte up to which nothing is missing.
    pub(super) contiguous: u32,
    /// The newest acknowledgement that this direction sent.
    pub(super) acknowledged: u32,
    /// When this direction last sent anything.
    pub(super) last_ns: i64,
    /// When `next` last grew.
    pub(super) grew_ns: i64,
    /// Its window, not shifted.
    pub(super) window: u32,
    pub(super) scale: Scale,
    /// It has sent an acknowledgement that was no SYN: from then on its windows are shifted.
    pub(super) has_acknowledged: bool,
    /// Duplicate acknowledgements in a row.
    pub(super) duplicates: u32,
    /// What was said of its last segment.
    pub(super) last_flags: Flags,
    /// The number of its SYN, or one less than that of the first byte seen.
    pub(super) base: Option<u32>,
    pub(super) unacknowledged: Unacknowledged,
}

impl Default for Side {
    fn default() -> Self {
        Side {
            next: 0,
            contiguous: 0,
            acknowledged: 0,
            last_ns: 0,
            grew_ns: 0,
            window: u32::MAX,
            scale: Scale::Unknown,
            has_acknowledged: false,
            duplicates: 0,
            last_flags: Flags::NONE,
            base: None,
            unacknowledged: Unacknowledged::default(),
        }
    }
}

impl Side {
    /// Where the window ends that this direction allows the other.
    pub(super) fn window_end(&self) -> u32 {
        let shift = match self.scale {
            Scale::By(shift) if self.has_acknowledged => u32::from(shift),
            _ => 0,
        };
        self.acknowledged.wrapping_add(self.window.wrapping_shl(shift))
    }
}

/// The ends of segments that are not acknowledged yet: bounded, and small unless the other
/// direction was not captured. Neighbours at the same distance are one run, since a bulk transfer's
/// segments are of one size.
#[derive(Debug, Default)]
pub(super) struct Unacknowledged {
    runs: VecDeque<Run>,
    segments: usize,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    first: u32,
    step: u32,
    count: u32,
}

impl Unacknowledged {
    pub(super) fn is_full(&self) -> bool {
        self.segments >= UNACKNOWLEDGED_MAX_SEGMENTS
    }

    /// Another segment, by its end.
    pub(super) fn push(&mut self, end: u32) {
        self.segments += 1;
        if let Some(run) = self.runs.back_mut() {
            let distance = end.wrapping_sub(run.last());
            if distance != 0 && distance < 1 << 20 && (run.count == 1 || distance == run.step) {
                (run.step, run.count) = (distance, run.count + 1);
                return;
            }
        }
        self.runs.push_back(Run { first: end, step: 0, count: 1 });
    }

    /// All up to `acknowledged` are done with.
    pub(super) fn acknowledge(&mut self, acknowledged: u32) {
        if self.segments == 0 {
            return;
        }
        let mut left = 0;
        self.runs.retain_mut(|run| {
            while run.count > 0 && !is_after(run.first, acknowledged) {
                run.first = run.first.wrapping_add(run.step);
                run.count -= 1;
            }
            left += run.count as usize;
            run.count > 0
        });
        self.segments = left;
    }
}

impl Run {
    fn last(&self) -> u32 {
        self.first.wrapping_add(self.step.wrapping_mul(self.count - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_counted_until_they_are_acknowledged() {
        let mut segments = Unacknowledged::default();
        for end in [100, 200, 300, 250, 300, 300] {
            segments.push(end);
        }
        assert_eq!(segments.segments, 6);
        segments.acknowledge(200);
        assert_eq!(segments.segments, 4);
        segments.acknowledge(299);
        assert_eq!(segments.segments, 3);
        segments.acknowledge(300);
        assert_eq!((segments.segments, segments.runs.len()), (0, 0));
    }

    #[test]
    fn a_bulk_transfer_is_one_run() {
        let mut segments = Unacknowledged::default();
        let mut end = u32::MAX - 50_000;
        while !segments.is_full() {
            end = end.wrapping_add(1_448);
            segments.push(end);
        }
        assert_eq!(segments.runs.len(), 1);
        segments.acknowledge(end.wrapping_sub(1));
        assert_eq!(segments.segments, 1);
    }
}
