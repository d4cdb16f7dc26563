//! The total time limit of a request: the route's or the service's timeout, or the client's deadline.

use std::time::Duration;

use model::{Cause, RouteTimeouts, Service};
use wire::http1::{Known, RequestHead};

/// Returns the time from the request head to the end of its response, and the cause reported when
/// it passes: `timeouts.total` of the route or else of the service, or the client's own deadline,
/// whichever is shorter. `None`: no limit.
///
/// A deadline is read from gRPC requests only: for other requests `grpc-timeout` means nothing.
pub fn total(
    of_route: RouteTimeouts,
    service: &Service,
    request: &RequestHead,
) -> Option<(Duration, Cause)> {
    let ours = of_route.total.or(service.timeouts.total).filter(|total| !total.is_zero());
    let ours = ours.map(|total| (total, Cause::TotalTimeout));
    let theirs = || request.known(Known::GrpcTimeout).and_then(grpc_timeout);
    let theirs = request.is_grpc().then(theirs).flatten();
    let theirs = theirs.map(|deadline| (deadline, Cause::ClientDeadlineExceeded));
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => Some(if theirs.0 < ours.0 { theirs } else { ours }),
        (ours, theirs) => ours.or(theirs),
    }
}

/// Parses `grpc-timeout`: at most eight digits and a unit ("gRPC over HTTP/2", Requests).
fn grpc_timeout(value: &[u8]) -> Option<Duration> {
    let (&unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let count = digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    Some(match unit {
        b'H' => Duration::from_secs(count * 3600),
        b'M' => Duration::from_secs(count * 60),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_deadline_is_read_as_grpc_writes_it() {
        for (text, expected) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("3S", Some(Duration::from_secs(3))),
            ("250m", Some(Duration::from_millis(250))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("10u", Some(Duration::from_micros(10))),
            ("", None),
            ("S", None),
            ("5", None),
            ("123456789S", None),
            ("-1S", None),
            ("1.5S", None),
        ] {
            assert_eq!(grpc_timeout(text.as_bytes()), expected, "{text}");
        }
    }
}
