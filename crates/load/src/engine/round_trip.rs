//! The network's round-trip time, from the kernel's data about a connection. Pure.

use std::time::Duration;

use os::tcp_info::TcpInfo;

/// A request of no more segments may be acknowledged by its response alone.
const RIDES_MAX_SEGMENTS: u64 = 2;

/// TCP's round trip on a connection over which requests of so many bytes go.
///
/// A receiver acknowledges every second segment at once, and a single one only with its response, if that
/// comes soon. So the kernel's smoothed estimate holds the server's time as well where requests are
/// small: then the smallest round trip is taken, which the handshake has measured. For larger requests the
/// smoothed one is right, and shows queues on the way.
pub(super) fn round_trip(info: &TcpInfo, request_bytes: u64) -> Duration {
    let rides = request_bytes <= RIDES_MAX_SEGMENTS * u64::from(info.snd_mss_bytes.max(1));
    // Before the first measurement the kernel has no smallest one: all bits are set.
    if rides && info.min_rtt <= info.rtt { info.min_rtt } else { info.rtt }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rides_on_a_response_is_not_the_networks() {
        let ms = Duration::from_millis;
        let info =
            TcpInfo { rtt: ms(11), min_rtt: ms(1), snd_mss_bytes: 1_448, ..TcpInfo::default() };
        assert_eq!(round_trip(&info, 80), ms(1));
        assert_eq!(round_trip(&info, 2 * 1_448), ms(1));
        assert_eq!(round_trip(&info, 100_000), ms(11), "a queue on the way shows");
        let unknown = TcpInfo { min_rtt: Duration::from_micros(u32::MAX.into()), ..info };
        assert_eq!(round_trip(&unknown, 80), ms(11));
    }
}
