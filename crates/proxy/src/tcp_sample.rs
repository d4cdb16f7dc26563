//! Samples the kernel's statistics (`TCP_INFO`) of both connections of an exchange, for a share of
//! all exchanges: one system call per side, and no cost for the others. Decides which exchanges are
//! sampled, and adds the result to the server's statistics.

use std::time::Duration;

use decide::Endpoint;
use model::{Log, Moment, TcpSample};
use observe::TcpSide;
use os::tcp_info::TcpInfo;
use transport::Stream;

/// A faster connect cannot have sent its SYN twice: Linux waits a second for an answer (RFC 6298
/// section 2), and no setting makes it wait less than this, its smallest timeout. So a normal
/// connect costs no extra system call.
pub(crate) const SYN_RETRY_MIN: Duration = Duration::from_millis(200);

/// Minimum interval between samples of a server beyond the configured share: 100 system calls a
/// second cost less than a ten-thousandth of a core.
const EXTRA_EVERY: Duration = Duration::from_millis(10);

/// Which exchanges are sampled. Drawn from bits of the random ID that each exchange has anyway, and
/// which no client can choose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampling {
    tcp_below: u64,
    is_raised: bool,
    decisions_below: u64,
}

impl Sampling {
    pub(crate) fn new(log: &Log) -> Sampling {
        // 1.0 lies above every 32-bit number.
        let below = |share: f64| (share * 4_294_967_296.0) as u64;
        Sampling {
            tcp_below: below(log.tcp_info),
            is_raised: log.tcp_info_raised,
            decisions_below: below(log.decisions),
        }
    }

    /// Returns whether TCP statistics are read for the exchange with this ID.
    pub(crate) fn asks_tcp(self, id: u128) -> bool {
        u64::from(id as u32) < self.tcp_below
    }

    /// Returns whether servers with little traffic are sampled beyond the share.
    pub(crate) fn is_raised(self) -> bool {
        self.is_raised
    }

    /// Returns whether its decisions are recorded.
    pub(crate) fn records_decisions(self, id: u128) -> bool {
        u64::from((id >> 32) as u32) < self.decisions_below
    }
}

/// Which statistics of a server connection have already been counted, so that none counts twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    sent: u32,
    sent_again: u32,
    reordered: u32,
}

impl Counts {
    /// The state after the handshake, before any data.
    fn after_handshake(info: &TcpInfo) -> Counts {
        Counts { sent_again: info.total_retrans, ..Counts::default() }
    }

    /// Returns what has been added since the last call.
    fn since(&mut self, info: &TcpInfo) -> TcpSample {
        let reordered = info.reordering_seen.unwrap_or(0);
        let now = Counts { sent: info.data_segs_out, sent_again: info.total_retrans, reordered };
        let before = std::mem::replace(self, now);
        TcpSample {
            round_trip: info.rtt,
            sent: now.sent.wrapping_sub(before.sent),
            sent_again: now.sent_again.wrapping_sub(before.sent_again),
            reordered: now.reordered.wrapping_sub(before.reordered),
        }
    }
}

/// Records a connection to `endpoint` that took `took` to open.
pub(crate) fn connected(stream: &Stream, endpoint: &Endpoint, took: Duration) -> Counts {
    let info = (took >= SYN_RETRY_MIN).then(|| stream.tcp_info().ok()).flatten();
    endpoint.state.tcp.note_dial(info.map_or(0, |info| info.total_retrans));
    info.map_or_else(Counts::default, |info| Counts::after_handshake(&info))
}

/// Samples the connection to a server, and records what is new.
pub(crate) fn server(
    stream: &Stream,
    counted: &mut Counts,
    endpoint: &Endpoint,
) -> Option<TcpSide> {
    let info = stream.tcp_info().ok()?;
    // A stream's connection is shared: its statistics do not belong to one exchange.
    if !stream.is_exchange() {
        endpoint.state.tcp.note(&counted.since(&info));
    }
    Some(side(&info))
}

/// Samples the connection to a server beyond the configured share, for the server's metrics only,
/// unless it was sampled within the last [`EXTRA_EVERY`].
pub(crate) fn server_extra(
    stream: &Stream,
    counted: &mut Counts,
    endpoint: &Endpoint,
    now: Moment,
) {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    if endpoint.state.tcp.claims_extra(millis(now.since(Moment::ZERO)), millis(EXTRA_EVERY)) {
        server(stream, counted, endpoint);
    }
}

/// Samples the connection to a client.
pub(crate) fn client(stream: &Stream) -> Option<TcpSide> {
    stream.tcp_info().ok().as_ref().map(side)
}

fn side(info: &TcpInfo) -> TcpSide {
    TcpSide { round_trip: info.rtt, retransmits: info.total_retrans }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_that_share_and_all_is_all() {
        let drawn = |share: f64| {
            let sampling = Sampling::new(&Log { tcp_info: share, decisions: share, ..Log::none() });
            let mut rng = fastrand::Rng::with_seed(7);
            let ids: Vec<u128> = (0..100_000).map(|_| rng.u128(..)).chain([0, u128::MAX]).collect();
            let tcp = ids.iter().filter(|id| sampling.asks_tcp(**id)).count();
            (tcp, ids.iter().filter(|id| sampling.records_decisions(**id)).count())
        };
        assert_eq!(drawn(0.0), (0, 0));
        assert_eq!(drawn(1.0), (100_002, 100_002));
        let (tcp, decisions) = drawn(0.1);
        assert!((9_500..10_500).contains(&tcp), "{tcp}");
        assert!((9_500..10_500).contains(&decisions), "{decisions}");
    }

    #[test]
    fn nothing_of_a_connection_counts_twice() {
        let info = |data_segs_out, total_retrans, reordering_seen| TcpInfo {
            data_segs_out,
            total_retrans,
            reordering_seen,
            ..TcpInfo::default()
        };
        // A repeated SYN does not count as a retransmitted segment.
        let mut counted = Counts::after_handshake(&info(0, 2, Some(0)));
        let first = counted.since(&info(10, 3, Some(1)));
        assert_eq!((first.sent, first.sent_again, first.reordered), (10, 1, 1));
        assert_eq!(counted.since(&info(10, 3, Some(1))), TcpSample::default());
        // The kernel's counters wrap.
        let mut counted = Counts { sent: u32::MAX, ..Counts::default() };
        assert_eq!(counted.since(&info(4, 0, None)).sent, 5);
    }
}
