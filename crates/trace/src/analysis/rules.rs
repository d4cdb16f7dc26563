//! The rules by which tshark 4.0 flags a segment, in its order.
//!
//! Found by experiment; `e2e/tests/trace.rs` compares them with tshark frame by frame. Later versions
//! differ. Rules that look odd are tshark's: the results are meant to equal its results.

use super::serial::{is_after, is_before};
use super::side::Side;
use super::{Connection, Flags};
use crate::decode::{Segment, bits};

/// A fast retransmission comes this soon after the acknowledgement that asked for it.
const FAST_WITHIN_NS: u64 = 20_000_000;
/// How late a segment may come and be out of order, where the round trip is not known.
const OUT_OF_ORDER_WITHIN_NS: u64 = 3_000_000;
/// Set when an acknowledgement of what was never seen has been noted twice: passes for many
/// duplicates, and for none at the next one.
const NOTED: u32 = u32::MAX;

/// The segment with what the rules ask of it.
pub(super) struct Arrival<'a> {
    pub(super) segment: &'a Segment,
    pub(super) now_ns: i64,
}

impl Arrival<'_> {
    fn is_plain(&self) -> bool {
        !self.segment.has(bits::SYN | bits::FIN | bits::RST)
    }

    /// SYN and FIN count as one byte.
    fn counts_a_flag(&self) -> bool {
        self.segment.has(bits::SYN | bits::FIN)
    }

    /// As long as a moment does not run backwards.
    fn since(&self, earlier_ns: i64) -> u64 {
        self.now_ns.wrapping_sub(earlier_ns).cast_unsigned()
    }

    fn repeats(&self, forward: &Side) -> bool {
        let segment = self.segment;
        segment.length == 0
            && u32::from(segment.window) == forward.window
            && segment.sequence == forward.next
            && segment.acknowledged == forward.acknowledged
            && self.is_plain()
    }
}

/// What `arrival`, sent by `forward`, is. The sides are then as they are after it.
pub(super) fn judge(connection: &mut Connection, from: usize, arrival: &Arrival<'_>) -> Flags {
    let initial_rtt_ns = connection.initial_rtt_ns;
    let (forward, reverse) = connection.pair(from);
    let segment = arrival.segment;
    if forward.base.is_none() {
        let is_syn = segment.has(bits::SYN);
        let base = if is_syn { segment.sequence } else { segment.sequence.wrapping_sub(1) };
        forward.base = Some(base);
    }
    if reverse.base.is_none() && segment.has(bits::ACK) {
        reverse.base = Some(segment.acknowledged.wrapping_sub(1));
    }
    let mut flags = Flags::NONE;
    about_windows(arrival, forward, reverse, &mut flags);
    if segment.acknowledged != forward.acknowledged {
        forward.duplicates = 0;
    }
    if segment.has(bits::ACK) && reverse.contiguous != 0 {
        acknowledges_the_unseen(segment.acknowledged, reverse, &mut flags);
    }
    let carries = segment.length > 0 || arrival.counts_a_flag();
    if carries && !flags.has(Flags::KEEP_ALIVE) {
        flags.add(sent_again(arrival, forward, reverse, initial_rtt_ns));
    }
    remember(arrival, forward, reverse, flags);
    flags
}

/// Windows, probes, keep-alives and acknowledgements.
fn about_windows(arrival: &Arrival<'_>, forward: &mut Side, reverse: &Side, flags: &mut Flags) {
    let segment = arrival.segment;
    let window = u32::from(segment.window);
    let is_plain = arrival.is_plain();
    if segment.length == 1 && segment.sequence == forward.next && reverse.window == 0 {
        flags.add(Flags::ZERO_WINDOW_PROBE);
        return;
    }
    if window == 0 && is_plain {
        flags.add(Flags::ZERO_WINDOW);
    }
    let is_reset = segment.has(bits::RST);
    if forward.next != 0 && is_after(segment.sequence, forward.next) && !is_reset {
        flags.add(Flags::LOST_SEGMENT);
    }
    if segment.length <= 1 && segment.sequence == forward.next.wrapping_sub(1) && is_plain {
        flags.add(Flags::KEEP_ALIVE);
    }
    if segment.length == 0
        && window != 0
        && window != forward.window
        && segment.sequence == forward.next
        && segment.acknowledged == forward.acknowledged
        && is_plain
    {
        flags.add(Flags::WINDOW_UPDATE);
    }
    let end = segment.sequence.wrapping_add(segment.length);
    let is_scale_known = reverse.scale != super::side::Scale::Unknown;
    if segment.length > 0 && is_scale_known && is_plain && end == reverse.window_end() {
        flags.add(Flags::WINDOW_FULL);
    }
    if !arrival.repeats(forward) {
        return;
    }
    if window == 0 {
        if reverse.last_flags.has(Flags::ZERO_WINDOW_PROBE) {
            flags.add(Flags::ZERO_WINDOW_PROBE_ACK);
        }
    } else if reverse.last_flags.has(Flags::KEEP_ALIVE) {
        flags.add(Flags::KEEP_ALIVE_ACK);
    } else {
        forward.duplicates = forward.duplicates.wrapping_add(1).max(1);
        flags.add(Flags::DUPLICATE_ACK);
    }
}

/// An acknowledgement of bytes that the capture does not have.
fn acknowledges_the_unseen(acknowledged: u32, reverse: &mut Side, flags: &mut Flags) {
    if !is_after(acknowledged, reverse.contiguous) {
        return;
    }
    if is_before(reverse.contiguous, reverse.next) {
        reverse.contiguous = reverse.next;
        flags.add(Flags::ACK_LOST_SEGMENT);
    } else {
        if reverse.duplicates == 0 {
            flags.add(Flags::ACK_LOST_SEGMENT);
        }
        reverse.duplicates = NOTED;
    }
}

/// Whether bytes were sent before, and how they come again.
fn sent_again(
    arrival: &Arrival<'_>,
    forward: &Side,
    reverse: &Side,
    initial_rtt_ns: Option<i64>,
) -> Flags {
    let segment = arrival.segment;
    let end = segment.sequence.wrapping_add(segment.length);
    let mut flags = Flags::NONE;
    if segment.length > 0
        && reverse.acknowledged != 0
        && (end == reverse.acknowledged || is_before(end, reverse.acknowledged))
    {
        flags.add(Flags::RETRANSMISSION);
        flags.add(Flags::SPURIOUS_RETRANSMISSION);
        return flags;
    }
    let is_behind = forward.next != 0 && is_before(segment.sequence, forward.next);
    // More than one byte, one byte back: the byte of a window probe, with what follows it.
    let follows_probe = segment.length > 1 && segment.sequence == forward.next.wrapping_sub(1);
    if !is_behind || follows_probe {
        return flags;
    }
    let end = end.wrapping_add(u32::from(arrival.counts_a_flag()));
    let late_ns = initial_rtt_ns.map_or(OUT_OF_ORDER_WITHIN_NS, i64::cast_unsigned);
    if reverse.duplicates >= 2
        && reverse.acknowledged == segment.sequence
        && arrival.since(reverse.last_ns) < FAST_WITHIN_NS
    {
        flags.add(Flags::RETRANSMISSION);
        flags.add(Flags::FAST_RETRANSMISSION);
    } else if arrival.since(forward.grew_ns) < late_ns && end != forward.next {
        flags.add(Flags::OUT_OF_ORDER);
    } else {
        flags.add(Flags::RETRANSMISSION);
    }
    flags
}

/// What the next segments are compared with.
fn remember(arrival: &Arrival<'_>, forward: &mut Side, reverse: &mut Side, flags: Flags) {
    let segment = arrival.segment;
    let is_probe = flags.has(Flags::ZERO_WINDOW_PROBE);
    let mut end = segment.sequence.wrapping_add(segment.length);
    let carries = segment.length > 0 || arrival.counts_a_flag();
    if carries && !forward.unacknowledged.is_full() {
        end = end.wrapping_add(u32::from(arrival.counts_a_flag()));
        forward.unacknowledged.push(end);
    }
    if !is_probe {
        if forward.next == 0 || is_after(end, forward.next) {
            forward.next = end;
            forward.grew_ns = arrival.now_ns;
        }
        if forward.contiguous == 0 || segment.sequence == forward.contiguous {
            forward.contiguous = forward.next;
        }
    }
    forward.window = u32::from(segment.window);
    forward.acknowledged = segment.acknowledged;
    forward.last_ns = arrival.now_ns;
    forward.last_flags = flags;
    if segment.has(bits::ACK) {
        reverse.unacknowledged.acknowledge(segment.acknowledged);
    }
}
