//! What the cause of a failed attempt says about its server.

use model::Cause;

/// Returns whether the cause means that the server is unreachable, and others of its zone may be
/// too.
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

/// Returns whether a server that has been sent a request may still be processing it: nothing shows
/// that it has stopped.
pub fn leaves_work(cause: Cause) -> bool {
    !matches!(
        cause,
        Cause::ServerClosedIdleConnection
            | Cause::ConnectionTerminated
            | Cause::ConnectionReset
            | Cause::ConnectionLost
            | Cause::ServerMarkedDown
            | Cause::HttpStreamRefused
            | Cause::HttpStreamReset
            | Cause::TlsProtocolError
            | Cause::TlsAlertReceived
            | Cause::HttpProtocolError
            | Cause::HttpResponseIncomplete
            | Cause::HttpResponseStatus
            | Cause::HttpResponseTransferCoding
            | Cause::HttpResponseTrailerTooLarge
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_closed_is_not_at_work() {
        assert!(!leaves_work(Cause::ConnectionTerminated));
        assert!(leaves_work(Cause::ClientClosed) && leaves_work(Cause::HttpResponseTimeout));
    }
}
