//! Decides whether a failed request is retried, and how.
//!
//! The first question is what may have happened to it already ([`Evidence`]): a request that no
//! server has acted on may be sent again whatever its method; one that may have been acted on only
//! if it is idempotent (RFC 9110 section 9.2.2). Then the means of a retry are checked: the body,
//! an attempt, another server, the service's [`RetryBudget`].
//!
//! Only decisions: the data plane observes the failures, and `pick` chooses the other server.

mod budget;
mod meaning;
mod policy;

pub use budget::{BudgetTerms, RetryBudget};
pub use meaning::{is_unreachable, leaves_work};
pub use policy::Policy;

use std::time::Duration;

use model::{Cause, Moment};

/// How often a request may be replayed because its pooled connection was stale, before a replay
/// counts as a normal attempt. One is usual, since a replay takes a fresh connection; the second is
/// for the next server's.
pub const REPLAYS_MAX: u32 = 2;

/// The shortest pause before a server that has answered gets the same request again: Envoy's default
/// (`retry_back_off.base_interval`). Another server gets it at once.
pub const SAME_SERVER_PAUSE_MIN: Duration = Duration::from_millis(25);

/// What is known about whether a server has acted on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// No server has acted on it: no byte was handed to the kernel, the server's close had arrived
    /// before the first was, or the server has declared it over HTTP/2, by `REFUSED_STREAM` or by a
    /// `GOAWAY` whose last stream is an earlier one (RFC 9113 section 8.7).
    NeverSent,
    /// The server may have acted on it. Unacknowledged bytes prove nothing: the acknowledgement may
    /// be what was lost.
    Unknown,
}

/// An attempt that produced no response head, or a response whose status is retried, and the means
/// for another.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// What the server may have done with it.
    pub evidence: Evidence,
    /// Why it failed.
    pub cause: Cause,
    /// Whether the request's method is idempotent (RFC 9110 section 9.2.2).
    pub idempotent: bool,
    /// Whether the request can be sent again from its start: it has no body, none of it has been
    /// read, or all that has been read is kept.
    pub body_kept: bool,
    /// Attempts left of `attempts_max`.
    pub attempts_left: u32,
    /// How often this request was replayed without counting as an attempt.
    pub replays: u32,
    /// Whether there is a server on which this request has not failed.
    pub another_server: bool,
    /// Whether it was one of several requests on a connection that ended (HTTP/2).
    pub shared_connection: bool,
    /// Whether the pause before another attempt ends before the request's total time does.
    pub in_time: bool,
}

/// The decision about a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send it again.
    Retry {
        /// On a new connection: the server's pooled ones are suspect.
        fresh_connection: bool,
        /// The failed server is used only as a last resort.
        avoid_server: bool,
        /// It uses up one of `attempts_left`; otherwise it is one of `replays`.
        counts: bool,
    },
    /// Answer with the failure's cause.
    Stop {
        /// Why it is not sent again.
        why: WhyNot,
    },
}

model::words! {
    /// Why a failed request was not sent again; part of the access record.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum WhyNot {
        /// A retry cannot help: the failure is the client's or Weir's own, a timeout that is used
        /// up, or an answer that would be the same again.
        NoUse = "no use",
        /// A server may have acted on it, and it is not idempotent.
        NotIdempotent = "not idempotent",
        /// Some of its body is gone.
        BodyNotKept = "body not kept",
        /// It has used all its attempts.
        NoAttemptsLeft = "no attempts left",
        /// Its total time would have passed before the next attempt began.
        NoTimeLeft = "no time left",
        /// The server cannot be reached, and there is no other.
        NoOtherServer = "no other server",
        /// The service's retries have used up the retry budget.
        BudgetSpent = "budget spent",
    }
}

/// Decides about a failed attempt; charges the budget if the decision is a retry that counts.
///
/// A stale pooled connection says nothing against its server: the request goes to the same one on a
/// fresh connection, neither counted as an attempt nor charged to the budget. Such replays cannot
/// cause a storm: the server has done no work for what it closed unread, each needs a connection
/// left behind by an earlier exchange, and none creates another. A request whose shared connection
/// ended is replayed once in the same way. Everything else is charged, including requests that were
/// never sent: refused connections that all move to the remaining servers are exactly the storm
/// that the budget prevents.
///
/// Retries of responses may use a part of the budget only: which statuses a server answers with is often
/// up to the client, and failures that are not must find some of it left.
pub fn decide(failed: &Failed, budget: &RetryBudget, now: Moment) -> Verdict {
    let is_response = failed.cause == Cause::HttpResponseStatus;
    let terms = if is_response { BudgetTerms::OF_RESPONSES } else { BudgetTerms::default() };
    decide_within(failed, budget, terms, now)
}

fn decide_within(
    failed: &Failed,
    budget: &RetryBudget,
    terms: BudgetTerms,
    now: Moment,
) -> Verdict {
    let stop = |why| Verdict::Stop { why };
    let remedy = remedy(failed.cause);
    if remedy == Remedy::None {
        return stop(WhyNot::NoUse);
    }
    if failed.evidence == Evidence::Unknown && !failed.idempotent {
        return stop(WhyNot::NotIdempotent);
    }
    if !failed.body_kept {
        return stop(WhyNot::BodyNotKept);
    }
    // A server about to close a connection refuses every request in progress on it, more than any
    // budget has room for. On a fresh connection it accepts them, or receives no more. On a shared
    // connection another request may have ended it. This request is replayed on a connection that
    // no other request uses, of which there are few at once: that bounds such replays, so that
    // requests that end connections cannot use up the budget of the others on them.
    let replays_max = if failed.cause == Cause::HttpStreamRefused || failed.shared_connection {
        1
    } else if remedy == Remedy::FreshConnection {
        REPLAYS_MAX
    } else {
        0
    };
    if failed.replays < replays_max {
        return Verdict::Retry { fresh_connection: true, avoid_server: false, counts: false };
    }
    if failed.attempts_left == 0 {
        return stop(WhyNot::NoAttemptsLeft);
    }
    if !failed.in_time {
        return stop(WhyNot::NoTimeLeft);
    }
    if remedy == Remedy::OtherServer && !failed.another_server {
        return stop(WhyNot::NoOtherServer);
    }
    if !budget.take(terms, now) {
        return stop(WhyNot::BudgetSpent);
    }
    let avoid_server = failed.another_server && remedy != Remedy::FreshConnection;
    // A connection that brought a response works.
    let fresh_connection = !avoid_server && failed.cause != Cause::HttpResponseStatus;
    Verdict::Retry { fresh_connection, avoid_server, counts: true }
}

/// What a retry needs in order to help.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Remedy {
    None,
    /// A new connection to the same server.
    FreshConnection,
    /// Another server only: the same one would fail again.
    OtherServer,
    /// Another server, or the same if there is no other.
    AnyServer,
}

#[expect(clippy::match_same_arms, reason = "two reasons for the same answer")]
#[expect(clippy::too_many_lines, reason = "one table of all causes")]
fn remedy(cause: Cause) -> Remedy {
    match cause {
        Cause::ServerClosedIdleConnection => Remedy::FreshConnection,
        // Local ports are counted per server, so another may have some left.
        Cause::ConnectionRefused
        | Cause::ConnectionTimeout
        | Cause::ListenQueueFull
        | Cause::ConnectSynUnanswered
        | Cause::DestinationIpUnroutable
        | Cause::ConnectionLimitReached
        | Cause::TlsProtocolError
        | Cause::TlsCertificateError
        | Cause::TlsAlertReceived
        | Cause::ServerMarkedDown => Remedy::OtherServer,
        // The request has used the time it was given (a second server's would come on top), the
        // response has begun or would be the same again, or no attempt was made.
        Cause::HttpResponseTimeout
        | Cause::TotalTimeout
        | Cause::ConnectionWriteTimeout
        | Cause::ConnectionReadTimeout
        | Cause::HttpResponseIncomplete
        | Cause::HttpResponseHeadTooLarge
        | Cause::DestinationUnavailable
        | Cause::QueueFull
        | Cause::QueueWaitExceeded => Remedy::None,
        // The server, or the path to it, failed this request; or it was given part of the time only.
        Cause::HttpStreamRefused
        | Cause::HttpStreamReset
        | Cause::ConnectionTerminated
        | Cause::ConnectionReset
        | Cause::ConnectionLost
        | Cause::HttpProtocolError
        | Cause::HttpResponseTrailerTooLarge
        | Cause::HttpResponseTransferCoding
        | Cause::HttpUpgradeFailed
        | Cause::AttemptTimeout
        | Cause::HttpResponseStatus => Remedy::AnyServer,
        // It ended well, or the client, Weir or the configuration is at fault.
        Cause::Completed
        | Cause::Redirected
        | Cause::Responded
        | Cause::Maintenance
        | Cause::TunnelIdleTimeout
        | Cause::HttpRequestError
        | Cause::MisdirectedRequest
        | Cause::UriTooLong
        | Cause::HttpRequestHeadTooLarge
        | Cause::HttpRequestBodyTooLarge
        | Cause::HttpRequestNotImplemented
        | Cause::HttpVersionNotSupported
        | Cause::HttpExpectationFailed
        | Cause::HttpRequestTimeout
        | Cause::HttpRequestBodyTimeout
        | Cause::HttpRequestBodySlow
        | Cause::HttpRequestIncomplete
        | Cause::ClientDeadlineExceeded
        | Cause::ClientClosed
        | Cause::ClientReset
        | Cause::ClientTlsError
        | Cause::ProxyProtocolError
        | Cause::EnhanceYourCalm
        | Cause::Http2ProtocolError
        | Cause::Http2StreamsExceeded
        | Cause::ClientWriteTimeout
        | Cause::HttpMethodNotAllowed
        | Cause::HttpRequestDenied
        | Cause::Unauthenticated
        | Cause::AuthenticationOverloaded
        | Cause::AuthenticationUnavailable
        | Cause::AuthenticationTimeout
        | Cause::RateLimited
        | Cause::ProxyLoopDetected
        | Cause::DestinationNotFound
        | Cause::ProxyConfigurationError
        | Cause::DnsError
        | Cause::ShuttingDown
        | Cause::ListenerChanged
        | Cause::ProxyInternalError => Remedy::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALE: Cause = Cause::ServerClosedIdleConnection;
    const DIED: Cause = Cause::ConnectionTerminated;
    const REFUSED: Cause = Cause::ConnectionRefused;

    const REPLAY: Verdict =
        Verdict::Retry { fresh_connection: true, avoid_server: false, counts: false };
    const ELSEWHERE: Verdict =
        Verdict::Retry { fresh_connection: false, avoid_server: true, counts: true };
    const AGAIN: Verdict =
        Verdict::Retry { fresh_connection: true, avoid_server: false, counts: true };

    fn failed(evidence: Evidence, cause: Cause) -> Failed {
        Failed {
            evidence,
            cause,
            idempotent: false,
            body_kept: true,
            attempts_left: 2,
            replays: 0,
            another_server: true,
            shared_connection: false,
            in_time: true,
        }
    }

    fn stop(why: WhyNot) -> Verdict {
        Verdict::Stop { why }
    }

    #[test]
    fn every_grade_of_evidence_has_its_answer() {
        use Evidence::{NeverSent, Unknown};
        let get = |evidence, cause| Failed { idempotent: true, ..failed(evidence, cause) };
        let post = failed;
        let cases = [
            // Any method while no server has acted on it.
            (post(NeverSent, REFUSED), ELSEWHERE),
            (post(NeverSent, DIED), ELSEWHERE),
            (post(NeverSent, STALE), REPLAY),
            (Failed { another_server: false, ..post(NeverSent, DIED) }, AGAIN),
            (post(NeverSent, Cause::HttpStreamRefused), REPLAY),
            (Failed { replays: 1, ..post(NeverSent, Cause::HttpStreamRefused) }, ELSEWHERE),
            // Otherwise only idempotent requests.
            (post(Unknown, DIED), stop(WhyNot::NotIdempotent)),
            (post(Unknown, STALE), stop(WhyNot::NotIdempotent)),
            (get(Unknown, DIED), ELSEWHERE),
            (get(Unknown, STALE), REPLAY),
            (Failed { shared_connection: true, ..get(Unknown, DIED) }, REPLAY),
            (Failed { shared_connection: true, replays: 1, ..get(Unknown, DIED) }, ELSEWHERE),
            (
                Failed { shared_connection: true, ..post(Unknown, DIED) },
                stop(WhyNot::NotIdempotent),
            ),
            (Failed { body_kept: false, ..get(Unknown, DIED) }, stop(WhyNot::BodyNotKept)),
            (Failed { body_kept: false, ..get(Unknown, STALE) }, stop(WhyNot::BodyNotKept)),
            (Failed { body_kept: false, ..post(NeverSent, DIED) }, stop(WhyNot::BodyNotKept)),
            // Another server if there is one; an unreachable one is not tried twice.
            (Failed { another_server: false, ..get(Unknown, DIED) }, AGAIN),
            (
                Failed { another_server: false, ..post(NeverSent, REFUSED) },
                stop(WhyNot::NoOtherServer),
            ),
            (
                Failed { another_server: false, ..get(Unknown, Cause::ServerMarkedDown) },
                stop(WhyNot::NoOtherServer),
            ),
            // Attempts are counted; replays are not, up to their bound.
            (Failed { attempts_left: 0, ..get(Unknown, DIED) }, stop(WhyNot::NoAttemptsLeft)),
            (Failed { attempts_left: 0, ..post(NeverSent, STALE) }, REPLAY),
            (Failed { replays: REPLAYS_MAX - 1, ..post(NeverSent, STALE) }, REPLAY),
            (Failed { replays: REPLAYS_MAX, ..post(NeverSent, STALE) }, AGAIN),
            (
                Failed { replays: REPLAYS_MAX, attempts_left: 0, ..post(NeverSent, STALE) },
                stop(WhyNot::NoAttemptsLeft),
            ),
            // A pause needs time, which a replay does not.
            (Failed { in_time: false, ..get(Unknown, DIED) }, stop(WhyNot::NoTimeLeft)),
            (Failed { in_time: false, ..post(NeverSent, STALE) }, REPLAY),
            // A response that is retried.
            (get(Unknown, Cause::HttpResponseStatus), ELSEWHERE),
            (
                Failed { another_server: false, ..get(Unknown, Cause::HttpResponseStatus) },
                Verdict::Retry { fresh_connection: false, avoid_server: false, counts: true },
            ),
            (post(Unknown, Cause::HttpResponseStatus), stop(WhyNot::NotIdempotent)),
            // Failures that no server can fix.
            (get(NeverSent, Cause::ClientClosed), stop(WhyNot::NoUse)),
            (get(Unknown, Cause::HttpResponseTimeout), stop(WhyNot::NoUse)),
            (get(Unknown, Cause::HttpRequestBodyTimeout), stop(WhyNot::NoUse)),
            (get(Unknown, Cause::HttpResponseHeadTooLarge), stop(WhyNot::NoUse)),
            (get(Unknown, Cause::HttpProtocolError), ELSEWHERE),
        ];
        for (failed, expected) in cases {
            let budget = RetryBudget::new();
            let verdict = decide(&failed, &budget, Moment::ZERO);
            assert_eq!(verdict, expected, "{failed:?}");
        }
    }

    #[test]
    fn no_request_that_may_have_been_acted_on_is_repeated_unless_it_is_idempotent_and_whole() {
        for &cause in Cause::ALL {
            for bits in 0..32 {
                let failed = Failed {
                    evidence: Evidence::Unknown,
                    cause,
                    idempotent: bits & 1 != 0,
                    body_kept: bits & 2 != 0,
                    attempts_left: 1,
                    replays: if bits & 4 != 0 { REPLAYS_MAX } else { 0 },
                    another_server: bits & 8 != 0,
                    shared_connection: bits & 16 != 0,
                    in_time: true,
                };
                let budget = RetryBudget::new();
                let verdict = decide(&failed, &budget, Moment::ZERO);
                if matches!(verdict, Verdict::Retry { .. }) {
                    assert!(failed.idempotent && failed.body_kept, "{failed:?}");
                }
            }
        }
    }

    #[test]
    fn with_the_budget_spent_only_stale_connections_are_replayed() {
        let terms = BudgetTerms { share_percent: 0, floor_per_s: 0 };
        let budget = RetryBudget::new();
        let ask = |failed| decide_within(&failed, &budget, terms, Moment::ZERO);
        let refused = failed(Evidence::NeverSent, REFUSED);
        assert_eq!(ask(refused), stop(WhyNot::BudgetSpent));
        assert_eq!(ask(failed(Evidence::NeverSent, STALE)), REPLAY);
        let stale = Failed { replays: REPLAYS_MAX, ..failed(Evidence::NeverSent, STALE) };
        assert_eq!(ask(stale), stop(WhyNot::BudgetSpent));
    }

    #[test]
    fn a_request_ends_after_a_bounded_number_of_sends_whatever_fails() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..2_000 {
            let (mut attempts_left, mut replays, mut sends) = (rng.u32(0..4), 0, 1);
            let sends_max = 1 + attempts_left + REPLAYS_MAX;
            let budget = RetryBudget::new();
            loop {
                let failed = Failed {
                    evidence: Evidence::NeverSent,
                    cause: *rng.choice(&[STALE, DIED, REFUSED]).unwrap(),
                    idempotent: rng.bool(),
                    body_kept: true,
                    attempts_left,
                    replays,
                    another_server: rng.bool(),
                    shared_connection: rng.bool(),
                    in_time: rng.bool(),
                };
                match decide(&failed, &budget, Moment::ZERO) {
                    Verdict::Stop { .. } => break,
                    Verdict::Retry { counts: true, .. } => attempts_left -= 1,
                    Verdict::Retry { counts: false, .. } => replays += 1,
                }
                sends += 1;
                assert!(sends <= sends_max, "seed {seed}");
            }
        }
    }
}
