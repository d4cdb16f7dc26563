//! The settings of one direction of a link, as in the file.

use serde::Deserialize;

use super::throttle::Throttle;
use crate::units::{Rate, Share, Size, Time};

/// The default queue of a link with a rate.
const QUEUE_BYTES: u64 = 256 * 1024;
/// The longest time that a packet is held back if no others pass it.
const HELD_MS: u64 = 100;

/// Both directions of a link.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ways {
    /// Both directions alike; not together with the others.
    pub both: Option<Way>,
    /// From the first end to the second.
    pub there: Option<Way>,
    /// From the second end to the first.
    pub back: Option<Way>,
}

/// One direction of a link. Without any of these, packets pass as fast as they come.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Way {
    /// Nothing passes.
    pub cut: bool,
    /// How long each packet takes.
    pub delay: Time,
    /// How far the delay wanders, either way. Packets stay in order.
    pub jitter: Time,
    /// Packets lost, each by itself.
    pub loss: Share,
    /// Packets lost in bursts.
    pub bursts: Option<Bursts>,
    /// Packets that arrive twice.
    pub duplicate: Share,
    /// Packets that are overtaken by others.
    pub reorder: Option<Reorder>,
    /// How much passes, in bits of IP packets per second.
    pub rate: Option<Rate>,
    /// How much waits when more comes than passes; what finds no room is dropped.
    pub queue: Option<Size>,
    /// Connection tracking that drops new connections.
    pub throttle: Option<Throttle>,
}

/// Loss after Gilbert and Elliott: the link is good or bad, and changes between the two packet by
/// packet.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// The chance at each packet that a good link becomes bad.
    pub begin: Share,
    /// The chance at each packet that a bad link becomes good; a burst lasts 1/`end` packets on
    /// the mean.
    pub end: Share,
    /// Packets lost while it is bad.
    #[serde(default = "all")]
    pub loss: Share,
}

fn all() -> Share {
    Share(1.0)
}

/// Holds a share of packets back, so that others pass them.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// How many are held back.
    pub share: Share,
    /// For how long; with `packets`, at most.
    pub by: Option<Time>,
    /// Until so many others have gone by.
    pub packets: Option<u32>,
}

impl Ways {
    /// The two directions, there and back.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn each(&self) -> Result<[Way; 2], String> {
        let ways = match (&self.both, &self.there, &self.back) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                return Err("`both` replaces `there` and `back`; use either".to_owned());
            }
            (Some(both), None, None) => [both.clone(), both.clone()],
            (None, there, back) => {
                [there.clone().unwrap_or_default(), back.clone().unwrap_or_default()]
            }
        };
        for way in &ways {
            way.check()?;
        }
        Ok(ways)
    }
}

impl Way {
    fn check(&self) -> Result<(), String> {
        if self.jitter > self.delay {
            return Err("`jitter` is at most `delay`: no packet comes before it is sent".to_owned());
        }
        if self.queue.is_some() && self.rate.is_none() {
            return Err("`queue` says what waits for `rate`, which is not given".to_owned());
        }
        if let Some(Reorder { by: None, packets: None, .. }) = self.reorder {
            return Err("`reorder` wants `by` (a time) or `packets` (a number)".to_owned());
        }
        self.throttle.as_ref().map_or(Ok(()), Throttle::check)
    }

    /// Whether it treats packets one by one, so that large ones (segments not cut up yet) must
    /// not stand for many.
    pub fn is_by_packet(&self) -> bool {
        self.loss.0 > 0.0
            || self.bursts.is_some()
            || self.duplicate.0 > 0.0
            || self.reorder.is_some()
            || self.rate.is_some()
    }

    /// Bytes that may wait for the link.
    pub(super) fn queue_bytes(&self) -> u64 {
        self.queue.map_or(QUEUE_BYTES, |queue| queue.0)
    }
}

impl Reorder {
    /// The longest that a packet is held back, in nanoseconds.
    pub(super) fn held_max_ns(&self) -> u64 {
        self.by.map_or(HELD_MS * 1_000_000, Time::as_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(text: &str) -> Result<[Way; 2], String> {
        toml::from_str::<Ways>(text).map_err(|error| error.to_string())?.each()
    }

    #[test]
    fn both_directions_are_alike_or_each_its_own() {
        let [there, back] = each("both = { delay = \"30ms\", loss = \"1%\" }").unwrap();
        assert_eq!(there, back);
        assert_eq!(there.delay.as_nanos(), 30_000_000);
        let [there, back] = each("back = { rate = \"180Mbit\" }").unwrap();
        assert_eq!((there, back.rate), (Way::default(), Some(Rate(180e6))));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_reason() {
        for (wrong, why) in [
            ("both = {}\nback = {}", "replaces"),
            ("both = { delay = \"1ms\", jitter = \"2ms\" }", "at most `delay`"),
            ("both = { queue = \"1kB\" }", "`rate`"),
            ("both = { reorder = { share = \"1%\" } }", "`by`"),
            ("both = { lost = \"1%\" }", "unknown field"),
            ("both = { loss = \"1\" }\nthere = 5", "invalid type"),
        ] {
            let error = each(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
