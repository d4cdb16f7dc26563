//! The decisions of one direction of a link: what happens to a packet.

use fastrand::Rng;

use super::facts::Facts;
use super::loss::{Loss, Lost};
use super::throttle::ThrottleState;
use super::way::Way;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does not arrive.
    Drop(Reason),
    /// It arrives.
    Pass(Passage),
}

/// When and how a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When, in nanoseconds of the clock that `now_ns` is of.
    pub at_ns: u64,
    /// It is kept beyond that until so many others have gone by, but not longer than `held_ns`.
    pub behind: u32,
    /// See `behind`.
    pub held_ns: u64,
    /// How often it arrives: 1 or 2.
    pub copies: u8,
}

/// Why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The link is cut.
    Cut,
    /// The throttle on new connections.
    Throttled,
    /// Lost by itself.
    Lost,
    /// Lost in a burst.
    Burst,
    /// The queue before the shaped link is full.
    QueueFull,
    /// More packets are under way than the forwarder keeps.
    TooMany,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Path {
    way: Way,
    loss: Loss,
    throttle: ThrottleState,
    duplicates: Rng,
    order: Rng,
    wander: Wander,
    /// When the shaped link has sent what it was given.
    busy_until_ns: u64,
}

impl Path {
    /// A direction with the settings of `way` and the random numbers of `seed`.
    pub fn new(way: Way, seed: u64) -> Path {
        // Each kind of decision draws from its own numbers: what one does to the next packet does
        // not depend on which others are switched on.
        let mut seeds = Rng::with_seed(seed);
        Path {
            way,
            loss: Loss::new(seeds.u64(..)),
            throttle: ThrottleState::default(),
            duplicates: seeds.fork(),
            order: seeds.fork(),
            wander: Wander::new(seeds.fork()),
            busy_until_ns: 0,
        }
    }

    /// Does something else from now on. What is known of sources and bursts stays.
    pub fn set(&mut self, way: Way) {
        self.way = way;
    }

    /// What happens to a packet that comes now.
    pub fn decide(&mut self, packet: Facts, now_ns: u64) -> Verdict {
        if self.way.cut {
            return Verdict::Drop(Reason::Cut);
        }
        if let (Some(throttle), Some(source), true) =
            (&self.way.throttle, packet.source, packet.opens)
            && !self.throttle.admits(throttle, source, now_ns)
        {
            return Verdict::Drop(Reason::Throttled);
        }
        match self.loss.next(&self.way) {
            Some(Lost::Alone) => return Verdict::Drop(Reason::Lost),
            Some(Lost::InBurst) => return Verdict::Drop(Reason::Burst),
            None => {}
        }
        let Some(sent_ns) = self.send(packet.bytes, now_ns) else {
            return Verdict::Drop(Reason::QueueFull);
        };
        let way = &self.way;
        let delay_ns = self.wander.around(way.delay.as_nanos(), way.jitter.as_nanos(), sent_ns);
        let mut passage =
            Passage { at_ns: sent_ns.saturating_add(delay_ns), behind: 0, held_ns: 0, copies: 1 };
        if way.duplicate.0 > 0.0 && self.duplicates.f64() < way.duplicate.0 {
            passage.copies = 2;
        }
        if let Some(reorder) = &way.reorder
            && self.order.f64() < reorder.share.0
        {
            passage.held_ns = reorder.held_max_ns();
            match reorder.packets {
                Some(packets) => passage.behind = packets,
                None => passage.at_ns = passage.at_ns.saturating_add(passage.held_ns),
            }
        }
        Verdict::Pass(passage)
    }

    /// When a packet has left the shaped link; `None` when the queue has no room for it. The link
    /// is free as soon as it has sent the packet's last bit.
    fn send(&mut self, bytes: u32, now_ns: u64) -> Option<u64> {
        let Some(rate) = self.way.rate else { return Some(now_ns) };
        let ns_per_byte = 8e9 / rate.0;
        let begins_ns = self.busy_until_ns.max(now_ns);
        let waiting_bytes = (begins_ns - now_ns) as f64 / ns_per_byte;
        // A link that is idle sends a packet whatever the queue holds.
        if waiting_bytes > 0.0 && waiting_bytes + f64::from(bytes) > self.way.queue_bytes() as f64 {
            return None;
        }
        self.busy_until_ns = begins_ns + (f64::from(bytes) * ns_per_byte) as u64;
        Some(self.busy_until_ns)
    }
}

/// A delay that wanders: along lines between points that are drawn at random, twice the jitter
/// apart. Its slope is -1 at the steepest, so no packet overtakes another.
#[derive(Clone, Debug)]
struct Wander {
    rng: Rng,
    from_ns: u64,
    to_ns: u64,
    /// Parts of the jitter, -1 to 1.
    begin: f64,
    end: f64,
}

impl Wander {
    fn new(rng: Rng) -> Wander {
        Wander { rng, from_ns: 0, to_ns: 0, begin: 0.0, end: 0.0 }
    }

    fn around(&mut self, delay_ns: u64, jitter_ns: u64, at_ns: u64) -> u64 {
        if jitter_ns == 0 {
            return delay_ns;
        }
        if at_ns >= self.to_ns {
            // After a pause it continues where it was.
            let is_next = at_ns < self.to_ns.saturating_add(2 * jitter_ns);
            self.from_ns = if is_next { self.to_ns } else { at_ns };
            self.to_ns = self.from_ns.saturating_add(2 * jitter_ns);
            self.begin = self.end;
            self.end = self.rng.f64() * 2.0 - 1.0;
        }
        let length = (self.to_ns - self.from_ns).max(1) as f64;
        let passed = at_ns.saturating_sub(self.from_ns) as f64 / length;
        let part = self.begin + (self.end - self.begin) * passed.min(1.0);
        (delay_ns as f64 + part * jitter_ns as f64).max(0.0) as u64
    }
}

#[cfg(test)]
#[path = "path/tests.rs"]
mod tests;
