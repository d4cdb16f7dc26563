//! Why an exchange ended as it did: one stable name each, the same in log, metric and answer.
//!
//! Names start from the proxy error types of RFC 9209 section 2.3 and go further where those do
//! not tell enough.

/// Who could have prevented an end that was not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Nobody: it ended well.
    None,
    /// The client.
    Client,
    /// The server.
    Server,
    /// The way between balancer and server.
    Network,
    /// This balancer, or the machine it runs on.
    Balancer,
    /// What was configured.
    Configuration,
}

impl Fault {
    /// Lower-case name, as in logs and labels.
    pub fn name(self) -> &'static str {
        match self {
            Fault::None => "none",
            Fault::Client => "client",
            Fault::Server => "server",
            Fault::Network => "network",
            Fault::Balancer => "balancer",
            Fault::Configuration => "configuration",
        }
    }
}

macro_rules! causes {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal, $fault:ident, $status:literal;)+) => {
        /// Why an exchange ended as it did. Each variant's comment is the page that a person
        /// reads: what happened, why it usually does, what to do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Cause { $($(#[$doc])+ $variant,)+ }

        impl Cause {
            /// Every cause, in order of the enum.
            pub const ALL: &'static [Cause] = &[$(Cause::$variant,)+];

            /// The stable name: log, metric label, `Proxy-Status`.
            pub fn name(self) -> &'static str {
                match self { $(Cause::$variant => $name,)+ }
            }

            /// Who could have prevented it.
            pub fn fault(self) -> Fault {
                match self { $(Cause::$variant => Fault::$fault,)+ }
            }

            /// The status of the answer that Weir makes for it; 0 where it makes none.
            pub fn status(self) -> u16 {
                match self { $(Cause::$variant => $status,)+ }
            }
        }
    };
}

causes! {
    /// The server's response was passed on whole, or a tunnel ended as its ends wished.
    Completed = "completed", None, 0;
    /// A route answered with a redirect.
    Redirected = "redirected", None, 0;

    /// The request does not follow RFC 9112, so that the next hop might read it otherwise than
    /// Weir does. Usually a broken or hostile client; the log's detail says which rule.
    HttpRequestError = "http_request_error", Client, 400;
    /// The request line is longer than Weir accepts.
    UriTooLong = "uri_too_long", Client, 414;
    /// The request's fields are larger or more than the listener's `head_max`. Usually cookies
    /// that pile up.
    HttpRequestHeadTooLarge = "http_request_head_too_large", Client, 431;
    /// The request body is larger than the listener's `body_max`.
    HttpRequestBodyTooLarge = "http_request_body_too_large", Client, 413;
    /// The request uses a transfer coding other than chunked, or a method that Weir does not
    /// serve (CONNECT).
    HttpRequestNotImplemented = "http_request_not_implemented", Client, 501;
    /// The request names an HTTP version other than 1.0 and 1.1.
    HttpVersionNotSupported = "http_version_not_supported", Client, 505;
    /// The request expects something other than 100-continue.
    HttpExpectationFailed = "http_expectation_failed", Client, 417;
    /// The client did not finish its request head in time.
    HttpRequestTimeout = "http_request_timeout", Client, 408;
    /// The client stopped sending its request body.
    HttpRequestBodyTimeout = "http_request_body_timeout", Client, 408;
    /// The client closed or reset its connection before its response was complete. Usually an
    /// impatient user or a client with a shorter timeout.
    ClientClosed = "client_closed", Client, 0;
    /// The client stopped reading its response.
    ClientWriteTimeout = "client_write_timeout", Client, 0;
    /// A route denies this request.
    HttpRequestDenied = "http_request_denied", Configuration, 403;
    /// More requests than the route's `rate_limit` allows for this key.
    RateLimited = "rate_limited", Client, 429;

    /// No route matches the request.
    DestinationNotFound = "destination_not_found", Configuration, 404;
    /// No server of the service is ready: all are down, ejected, drained, or none is known.
    DestinationUnavailable = "destination_unavailable", Server, 503;
    /// Every server is at its limit and the queue is full. Add servers, or raise `in_flight_max`
    /// if they can bear more.
    QueueFull = "queue_full", Server, 429;
    /// Every server stayed at its limit for as long as the queue's `wait_max`.
    QueueWaitExceeded = "queue_wait_exceeded", Server, 429;

    /// The server's address refused the connection: nothing listens there.
    ConnectionRefused = "connection_refused", Server, 502;
    /// The connection was not established within the connect timeout.
    ConnectionTimeout = "connection_timeout", Network, 504;
    /// No route to the server, or the network is unreachable.
    DestinationIpUnroutable = "destination_ip_unroutable", Network, 502;
    /// This machine could not open a connection: no local port, no descriptor, no memory.
    ConnectionLimitReached = "connection_limit_reached", Balancer, 503;
    /// The server closed or reset the connection before its response was complete.
    ConnectionTerminated = "connection_terminated", Server, 502;
    /// The server closed a kept connection just as a request was sent on it.
    ServerClosedIdleConnection = "server_closed_idle_connection", Server, 502;
    /// The server stopped taking the request body.
    ConnectionWriteTimeout = "connection_write_timeout", Server, 504;
    /// The server stopped sending in the middle of its response body.
    ConnectionReadTimeout = "connection_read_timeout", Server, 504;
    /// No complete response head within the response timeout.
    HttpResponseTimeout = "http_response_timeout", Server, 504;
    /// The server was marked down while this request waited for its response head, and the
    /// request could not be repeated elsewhere.
    ServerMarkedDown = "server_marked_down", Server, 502;
    /// What the server sent is not a valid HTTP/1.1 response.
    HttpProtocolError = "http_protocol_error", Server, 502;
    /// The server's response head is larger than Weir accepts.
    HttpResponseHeadTooLarge = "http_response_header_section_size", Server, 502;
    /// The response ended before its Content-Length or last chunk.
    HttpResponseIncomplete = "http_response_incomplete", Server, 502;
    /// The idle timeout of a tunnel ended it.
    TunnelIdleTimeout = "tunnel_idle_timeout", None, 0;

    /// Weir is stopping and the drain time is over.
    ShuttingDown = "shutting_down", Balancer, 503;
    /// A bug in Weir.
    ProxyInternalError = "proxy_internal_error", Balancer, 500;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_fit_a_structured_field_token() {
        let mut names: Vec<_> = Cause::ALL.iter().map(|cause| cause.name()).collect();
        assert!(names.iter().all(|n| n.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Cause::ALL.len());
    }
}
