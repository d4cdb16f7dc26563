//! Decides what the outcome of an attempt says about its server. No other file assigns blame.
//!
//! Passive health checking, the per-server failure counts, and findings follow this table. Its
//! three inputs are the outcome, which side was being waited for at that moment, and how much of
//! the request had been sent.
//!
//! | outcome | waiting for | sent | blame |
//! |---|---|---|---|
//! | a status below 500 | any | any | good |
//! | 501, 505: the method or version is the client's choice; 508: a loop is the configuration's | any | any | none |
//! | another 5xx, if the service counts them | client | part | none |
//! | | server | any | compared |
//! | refused, unanswered, or a failed handshake | any | connecting | certain |
//! | connection lost: the host stopped acknowledging | any | any | certain |
//! | the total time ran out before the server had the request | any | connecting | none |
//! | a failure of the client, the balancer or the configuration | any | any | none |
//! | a stale kept connection, a refused stream, marked down | any | any | none |
//! | any other failure of the server or the network | any | nothing | none |
//! | | client | part | none |
//! | | server | part, whole | compared |
//! | a write that waited for a window that others may have used up | any | any | none |
//! | a shared connection that ended with others on it | any | any | none |
//! | the second and later requests that one connection's end or failed handshake concerns | any | any | none |
//!
//! **Certain** failures count on their own, since no client can cause them. **Compared** failures
//! happened after the server had seen the request, so the request itself may be the cause: they
//! count only if the server is clearly worse than its peers ([`crate::comparison`]), and a request
//! that fails on two servers counts against neither.
//!
//! Remaining weakness: a client that can choose its server, by the key of `balance = "hash"`, can
//! make that server look worse than its peers with requests that fail on any server. Requests that
//! affinity bound to their server are left out of the comparison.

use std::time::Duration;

use model::{Cause, Fault};

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A final response head arrived, with this status.
    Answered(u16),
    /// No usable response head arrived.
    Failed(Cause),
}

/// Which side had to act next when an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitingFor {
    /// The request's body was incomplete, and the client had to send more of it.
    Client,
    /// The server had to connect, read or answer.
    Server,
}

/// How much of the request had been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// No connection was ready for it yet.
    Connecting,
    /// There was a connection, and nothing had been sent, or the server declared that it did not
    /// process it.
    Nothing,
    /// The server may have seen part of it.
    Part,
    /// All of it was handed to the kernel.
    Whole,
}

/// An attempt that has ended, in the terms of blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The outcome.
    pub outcome: Outcome,
    /// Which side had to act next.
    pub waiting_for: WaitingFor,
    /// How much of the request had been sent.
    pub sent: Sent,
    /// Other requests also use its connection (HTTP/2)…
    pub shared: bool,
    /// …and that has ended with others on it.
    pub among_others: bool,
    /// Another request has already been blamed for the end of the connection that they shared, or
    /// for the connection that both waited for.
    pub judged: bool,
}

impl Ended {
    /// Returns an attempt whose connection no other request used.
    pub fn alone(outcome: Outcome, waiting_for: WaitingFor, sent: Sent) -> Ended {
        Ended { outcome, waiting_for, sent, shared: false, among_others: false, judged: false }
    }
}

/// What an outcome says about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The server worked.
    Good,
    /// Nothing, neither for nor against it.
    None,
    /// It failed, and no request can be the cause.
    Certain,
    /// It failed after it had seen the request: counts if the server is clearly worse than its
    /// peers.
    Compared,
}

impl Blame {
    /// Returns whether the attempt counts as a failure of the server.
    pub fn is_against(self) -> bool {
        matches!(self, Blame::Certain | Blame::Compared)
    }
}

/// Decides what an outcome says about its server. `count_5xx`: whether the service counts
/// responses of 500 and above (`passive.count_5xx`).
pub fn judge(ended: Ended, count_5xx: bool) -> Blame {
    match ended.outcome {
        Outcome::Answered(0..=499) => Blame::Good,
        Outcome::Answered(501 | 505 | 508) => Blame::None,
        Outcome::Answered(_) if !count_5xx => Blame::Good,
        Outcome::Answered(_) => after_sending(ended),
        Outcome::Failed(cause) => failed(ended, cause),
    }
}

fn failed(ended: Ended, cause: Cause) -> Blame {
    #[allow(clippy::wildcard_enum_match_arm, reason = "of any other cause the fault decides")]
    let says_nothing = match cause {
        // What happened to a pooled connection says nothing about the server; a server marked down
        // has been judged by the checks already; and refusing a stream is orderly, as by a server
        // that is stopping.
        Cause::ServerClosedIdleConnection | Cause::ServerMarkedDown | Cause::HttpStreamRefused => {
            true
        }
        // The time may have been spent in the queue, or on another server.
        Cause::TotalTimeout => ended.sent == Sent::Connecting,
        // The window belongs to the connection: streams that the server does not read may have used
        // it up.
        Cause::ConnectionWriteTimeout => ended.shared,
        other => !matches!(other.fault(), Fault::Server | Fault::Network),
    };
    if says_nothing || ended.judged {
        Blame::None
    } else if cause == Cause::ConnectionLost || ended.sent == Sent::Connecting {
        Blame::Certain
    } else if ended.among_others {
        // Another request may be the cause. A retry, if allowed, uses a separate connection and
        // shows it.
        Blame::None
    } else {
        after_sending(ended)
    }
}

fn after_sending(ended: Ended) -> Blame {
    match (ended.sent, ended.waiting_for) {
        (Sent::Connecting | Sent::Nothing, _) if matches!(ended.outcome, Outcome::Failed(_)) => {
            Blame::None
        }
        (sent, WaitingFor::Client) if sent != Sent::Whole => Blame::None,
        _ => Blame::Compared,
    }
}

/// Minimum time spent waiting for a request's body from which on the client is named as the cause
/// of what the server did then.
pub const SLOW_BODY_MIN: Duration = Duration::from_secs(1);

/// Returns the cause to report for a failed attempt: if a server gave up, or the time ran out,
/// while Weir waited for the body, the client is at fault. `waited`: how long the client kept the
/// attempt waiting in total.
pub fn cause_to_report(ended: Ended, cause: Cause, waited: Duration) -> Cause {
    let of_the_server =
        matches!(cause.fault(), Fault::Server | Fault::Network) && cause != Cause::ConnectionLost;
    let incomplete = ended.waiting_for == WaitingFor::Client && ended.sent != Sent::Whole;
    if of_the_server && incomplete && waited >= SLOW_BODY_MIN {
        return Cause::HttpRequestBodySlow;
    }
    // Its share of the total time is what remained of it.
    if cause == Cause::TotalTimeout && incomplete {
        return Cause::HttpRequestBodySlow;
    }
    cause
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: [Sent; 4] = [Sent::Connecting, Sent::Nothing, Sent::Part, Sent::Whole];
    const WAITING: [WaitingFor; 2] = [WaitingFor::Client, WaitingFor::Server];

    fn ended(outcome: Outcome, waiting_for: WaitingFor, sent: Sent) -> Ended {
        Ended::alone(outcome, waiting_for, sent)
    }

    /// Every cause and status, either side waited for, every stage.
    fn all() -> impl Iterator<Item = Ended> {
        let failed = Cause::ALL.iter().map(|&cause| Outcome::Failed(cause));
        let outcomes: Vec<_> = failed.chain((200..600).map(Outcome::Answered)).collect();
        outcomes.into_iter().flat_map(|outcome| {
            let each = move |waiting| SENT.map(move |sent| ended(outcome, waiting, sent));
            WAITING.into_iter().flat_map(each)
        })
    }

    #[test]
    fn the_table_holds_for_every_row() {
        use Blame::{Certain, Compared, Good};
        use WaitingFor::{Client, Server};
        let failed = |cause, waiting, sent| ended(Outcome::Failed(cause), waiting, sent);
        let status = |status, waiting, sent| ended(Outcome::Answered(status), waiting, sent);
        let rows = [
            (status(200, Server, Sent::Whole), Good),
            (status(404, Client, Sent::Part), Good),
            (status(501, Server, Sent::Whole), Blame::None),
            (status(505, Server, Sent::Whole), Blame::None),
            (status(508, Server, Sent::Whole), Blame::None),
            (status(500, Server, Sent::Whole), Compared),
            (status(503, Server, Sent::Part), Compared),
            (status(503, Client, Sent::Part), Blame::None),
            (status(503, Client, Sent::Whole), Compared),
            (failed(Cause::ConnectionRefused, Server, Sent::Connecting), Certain),
            (failed(Cause::ConnectSynUnanswered, Server, Sent::Connecting), Certain),
            (failed(Cause::ListenQueueFull, Server, Sent::Connecting), Certain),
            (failed(Cause::TlsCertificateError, Server, Sent::Connecting), Certain),
            (failed(Cause::ConnectionTerminated, Server, Sent::Connecting), Certain),
            (failed(Cause::ConnectionLimitReached, Server, Sent::Connecting), Blame::None),
            (failed(Cause::TotalTimeout, Server, Sent::Connecting), Blame::None),
            (failed(Cause::TotalTimeout, Client, Sent::Part), Blame::None),
            (failed(Cause::TotalTimeout, Server, Sent::Whole), Compared),
            (failed(Cause::ClientDeadlineExceeded, Server, Sent::Whole), Blame::None),
            (failed(Cause::ConnectionLost, Client, Sent::Part), Certain),
            (failed(Cause::ConnectionTerminated, Client, Sent::Part), Blame::None),
            (failed(Cause::ConnectionTerminated, Server, Sent::Part), Compared),
            (failed(Cause::ConnectionReset, Server, Sent::Nothing), Blame::None),
            (failed(Cause::HttpResponseTimeout, Server, Sent::Whole), Compared),
            (failed(Cause::HttpProtocolError, Server, Sent::Whole), Compared),
            (failed(Cause::HttpStreamRefused, Server, Sent::Nothing), Blame::None),
            (failed(Cause::ServerClosedIdleConnection, Server, Sent::Whole), Blame::None),
            (failed(Cause::ClientClosed, Server, Sent::Whole), Blame::None),
            (failed(Cause::ConnectionWriteTimeout, Server, Sent::Part), Compared),
        ];
        for (row, expected) in rows {
            assert_eq!(judge(row, true), expected, "{row:?}");
        }
        let window = failed(Cause::ConnectionWriteTimeout, Server, Sent::Part);
        assert_eq!(judge(Ended { shared: true, ..window }, true), Blame::None);
        let stream = failed(Cause::ConnectionReset, Server, Sent::Whole);
        assert_eq!(judge(Ended { shared: true, ..stream }, true), Compared);
        assert_eq!(judge(Ended { judged: true, ..stream }, true), Blame::None);
        assert_eq!(judge(Ended { among_others: true, ..stream }, true), Blame::None);
        let lost = failed(Cause::ConnectionLost, Server, Sent::Whole);
        assert_eq!(judge(Ended { judged: true, ..lost }, true), Blame::None);
        assert_eq!(judge(Ended { among_others: true, ..lost }, true), Certain);
    }

    #[test]
    fn nothing_counts_while_the_client_is_waited_for_but_a_host_that_is_gone() {
        for ended in all().filter(|ended| ended.waiting_for == WaitingFor::Client) {
            let lost = ended.outcome == Outcome::Failed(Cause::ConnectionLost);
            let before = ended.sent == Sent::Connecting;
            if ended.sent != Sent::Whole && !lost && !before {
                assert!(!judge(ended, true).is_against(), "{ended:?}");
            }
        }
    }

    #[test]
    fn only_what_no_request_can_bring_about_is_certain() {
        for ended in all().filter(|ended| judge(*ended, true) == Blame::Certain) {
            let lost = ended.outcome == Outcome::Failed(Cause::ConnectionLost);
            assert!(lost || ended.sent == Sent::Connecting, "{ended:?}");
        }
    }

    #[test]
    fn nothing_unsent_and_nothing_of_the_clients_counts() {
        for ended in all() {
            let Outcome::Failed(cause) = ended.outcome else { continue };
            let ours = !matches!(cause.fault(), Fault::Server | Fault::Network);
            let unsent = ended.sent == Sent::Nothing && cause != Cause::ConnectionLost;
            if ours || unsent {
                assert_eq!(judge(ended, true), Blame::None, "{ended:?}");
            }
        }
    }

    #[test]
    fn statuses_count_only_where_the_service_counts_them() {
        for ended in all().filter(|ended| matches!(ended.outcome, Outcome::Answered(_))) {
            assert!(!judge(ended, false).is_against(), "{ended:?}");
        }
    }

    #[test]
    fn a_server_that_tires_of_a_slow_body_is_not_the_cause() {
        let ended = |cause, waiting, sent| ended(Outcome::Failed(cause), waiting, sent);
        let report = |cause, waiting, sent, seconds| {
            cause_to_report(ended(cause, waiting, sent), cause, Duration::from_secs(seconds))
        };
        use WaitingFor::{Client, Server};
        let died = Cause::ConnectionTerminated;
        assert_eq!(report(died, Client, Sent::Part, 2), Cause::HttpRequestBodySlow);
        assert_eq!(report(died, Client, Sent::Part, 0), died, "it may just have died");
        assert_eq!(report(died, Server, Sent::Part, 2), died);
        assert_eq!(report(died, Client, Sent::Whole, 2), died);
        let total = Cause::TotalTimeout;
        assert_eq!(report(total, Client, Sent::Part, 0), Cause::HttpRequestBodySlow);
        assert_eq!(report(total, Server, Sent::Whole, 2), total);
        let lost = Cause::ConnectionLost;
        assert_eq!(report(lost, Client, Sent::Part, 2), lost);
        let gone = Cause::ClientClosed;
        assert_eq!(report(gone, Client, Sent::Part, 2), gone);
    }
}
