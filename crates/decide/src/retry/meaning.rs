//! What the cause of a failed attempt says of its server.

use model::{Cause, Fault};

/// Whether passive health is to count it: the server, or the way to it, did not do its part. What
/// happened to a kept connection says nothing of the server, and checks have spoken already where
/// it was marked down.
pub fn counts_against_server(cause: Cause) -> bool {
    matches!(cause.fault(), Fault::Server | Fault::Network)
        && !matches!(
            cause,
            Cause::ServerClosedIdleConnection
                | Cause::ServerMarkedDown
                // Said in good order, as by a server that is stopping.
                | Cause::HttpStreamRefused
        )
}

/// Whether its server cannot be reached, and others of the same zone may not be either.
pub fn is_unreachable(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::ConnectionTimeout
            | Cause::ConnectSynUnanswered
            | Cause::ConnectionLost
            | Cause::DestinationIpUnroutable
            | Cause::ServerMarkedDown
    )
}

/// Whether a server that has been sent a request may still be at work on it: nothing has told that
/// it is gone.
pub fn leaves_work(cause: Cause) -> bool {
    !matches!(
        cause,
        Cause::ServerClosedIdleConnection
            | Cause::ConnectionTerminated
            | Cause::ConnectionReset
            | Cause::ConnectionLost
            | Cause::ServerMarkedDown
            | Cause::HttpStreamRefused
            | Cause::TlsProtocolError
            | Cause::TlsAlertReceived
            | Cause::HttpProtocolError
            | Cause::HttpResponseIncomplete
            | Cause::HttpResponseTransferCoding
            | Cause::HttpResponseTrailerTooLarge
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_failures_count_and_those_of_others_do_not() {
        for cause in [Cause::ConnectionRefused, Cause::ConnectionTimeout, Cause::HttpProtocolError]
        {
            assert!(counts_against_server(cause), "{}", cause.name());
        }
        for cause in [
            Cause::ClientClosed,
            Cause::ConnectionLimitReached,
            Cause::ServerClosedIdleConnection,
            Cause::ServerMarkedDown,
            Cause::HttpRequestBodyTooLarge,
        ] {
            assert!(!counts_against_server(cause), "{}", cause.name());
        }
    }

    #[test]
    fn a_server_that_closed_is_not_at_work() {
        assert!(!leaves_work(Cause::ConnectionTerminated));
        assert!(leaves_work(Cause::ClientClosed) && leaves_work(Cause::HttpResponseTimeout));
    }
}
