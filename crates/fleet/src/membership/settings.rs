//! The times and counts of the protocol, for fleets on a LAN and across zones.

use std::num::{NonZeroU8, NonZeroU32, NonZeroUsize};
use std::time::Duration;

use foca::{Config, PeriodicParams};

use crate::seal::PAYLOAD_MAX;

/// Each member probes one other member this often.
const PROBE_PERIOD: Duration = Duration::from_secs(1);
/// A probe that takes longer is repeated through other members.
const PROBE_RTT: Duration = Duration::from_millis(500);
/// How long a suspected member of a small fleet has to answer. Ten to fifteen rounds of gossip.
const SUSPICION: Duration = Duration::from_secs(3);
/// How long a member that is down is remembered, and sought in case it was only unreachable.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);
/// Each member repeats an update in so many datagrams, and in as many more as the logarithm of the fleet's size.
/// If all members send `n` copies to random others, a member misses all of them with a probability of `exp(-n)`:
/// of 32 members, one misses an update once in 2,000 updates.
const TRANSMISSIONS: u8 = 7;
/// How many members are asked to repeat a probe, and how many get a change at once.
const HELPERS: NonZeroUsize = NonZeroUsize::new(3).unwrap();
/// How many members get the news that this one leaves.
const FAREWELLS: NonZeroUsize = NonZeroUsize::new(8).unwrap();
const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// The membership's messages have a byte for the kind and one for the part of the protocol.
const PACKET_MAX: NonZeroUsize = NonZeroUsize::new(PAYLOAD_MAX - 2).unwrap();

/// Returns foca's configuration for this many members. With 32, a dead member is known to all within 6 s.
pub(super) fn config(members: usize) -> Config {
    let size =
        NonZeroU32::new(u32::try_from(members).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN);
    // News takes longer through a large fleet, so a suspected member gets more time.
    let slowness = (f64::from(size.get()).log10() / 1.5).clamp(1.0, 10.0);
    Config {
        probe_period: PROBE_PERIOD,
        probe_rtt: PROBE_RTT,
        num_indirect_probes: HELPERS,
        max_transmissions: NonZeroU8::MIN
            .saturating_add(TRANSMISSIONS + f64::from(size.get()).ln() as u8),
        suspect_to_down_after: SUSPICION.mul_f64(slowness),
        remove_down_after: Some(REMEMBERED),
        max_packet_size: PACKET_MAX,
        notify_down_members: true,
        // The roster does this exactly; see `roster`.
        periodic_announce: None,
        periodic_announce_to_down_members: Some(PeriodicParams {
            frequency: Duration::from_secs(8),
            num_members: TWO,
        }),
        periodic_gossip: Some(PeriodicParams {
            frequency: Duration::from_millis(250),
            num_members: TWO,
        }),
    }
}

/// Returns the configuration with which a member leaves: more members get the news.
pub(super) fn farewell(members: usize) -> Config {
    Config { num_indirect_probes: FAREWELLS, ..config(members) }
}
