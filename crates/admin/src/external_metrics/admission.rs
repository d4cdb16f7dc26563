//! Admits clients of the external metrics API: asks the API server, and remembers its answers for some seconds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use autoscaler::access::{
    self, Cache, Certificate, Claim, FrontProxy, Review, User, Verdict, Wish,
};
use autoscaler::external;
use aws_lc_rs::digest::{SHA256, digest};
use axum::http::HeaderMap;
use model::Moment;
use tls::ClientAuthority;
use tokio::time::{Instant, timeout_at};

use super::Delegate;
use crate::bounded::{Seat, Working};

/// How long an answer of the API server counts that allows, and one that denies. kube-apiserver's own aggregated APIs
/// use 10 s for both.
const ALLOWED_KEPT: Duration = Duration::from_secs(10);
const DENIED_KEPT: Duration = Duration::from_secs(2);
/// Maximum number of answers that are remembered of each kind.
const ANSWERS_MAX: usize = 1_024;
/// Maximum time for all questions that a request needs. The API server itself waits 10 s for an aggregated API.
const ADMIT_MAX: Duration = Duration::from_secs(8);
/// Interval at which failures to ask are logged.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// The SHA-256 of a token: the token itself is not kept.
type TokenId = Vec<u8>;

/// Admits clients.
pub(super) struct Admission {
    delegate: Delegate,
    state: Mutex<State>,
}

struct State {
    /// Who has a token; the error is why it is not valid.
    users: Cache<TokenId, Result<User, String>>,
    /// Whether a user may read something; the error is why not.
    allowed: Cache<(User, Wish), Result<(), String>>,
    /// The front proxy's authority, and what it was read from.
    authority: Option<(Arc<FrontProxy>, Result<ClientAuthority, String>)>,
    logged: Option<Moment>,
}

impl Admission {
    pub(super) fn new(delegate: Delegate) -> Admission {
        let state = State {
            users: Cache::new(ANSWERS_MAX),
            allowed: Cache::new(ANSWERS_MAX),
            authority: None,
            logged: None,
        };
        Admission { delegate, state: Mutex::new(state) }
    }

    /// Admits a request, or returns the status and the reason for which it is refused.
    pub(super) async fn admit(
        &self,
        fields: &HeaderMap,
        seat: &Seat,
        wish: Wish,
    ) -> Result<Working, (u16, String)> {
        let (now, ends) = (os::clock::now(), Instant::now() + ADMIT_MAX);
        let front_proxy = self.delegate.front_proxy.borrow().clone();
        let certificate = self.certificate(seat, front_proxy.as_ref());
        let named: Vec<_> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let unknown = |why| (401, format!("Unauthorized: {why}"));
        let claim = access::claim(&certificate, &named, front_proxy.as_deref()).map_err(unknown)?;
        // The front proxy's connections are not those of strangers while the API server is asked.
        let working = matches!(claim, Claim::User(_)).then(|| seat.request());
        let user = match claim {
            Claim::User(user) => user,
            Claim::Token(token) => self.user(token, now, ends).await.map_err(unknown)?,
        };
        if !user.is_master() {
            self.allow(&user, &wish, now, ends)
                .await
                .map_err(|why| (403, external::forbidden(&user, &wish, &why)))?;
        }
        Ok(working.unwrap_or_else(|| seat.request()))
    }

    /// Checks the certificate of a connection.
    fn certificate(&self, seat: &Seat, front_proxy: Option<&Arc<FrontProxy>>) -> Certificate {
        let chain = seat.presented();
        let (Some(leaf), Some(front_proxy)) = (chain.first(), front_proxy) else {
            return if chain.is_empty() {
                Certificate::Absent
            } else {
                Certificate::Untrusted("its authority is unknown".to_owned())
            };
        };
        let authority = self.state().authority(front_proxy);
        let name = authority.and_then(|one| {
            one.verify(chain, os::clock::wall())?;
            let unclear = || "it has several common names, or one that is not text".to_owned();
            tls::common_name(leaf).ok_or_else(unclear)
        });
        name.map_or_else(Certificate::Untrusted, Certificate::Verified)
    }

    /// Returns who has a token. What the API server says counts from `now`; it is asked until `ends`.
    async fn user(&self, token: String, now: Moment, ends: Instant) -> Result<User, String> {
        let id = digest(&SHA256, token.as_bytes()).as_ref().to_vec();
        if let Some(known) = self.state().users.get(&id, now) {
            return known;
        }
        let user = match self.ask(Review::Token(token), ends).await? {
            Verdict::User(user) => Ok(user),
            Verdict::Allowed | Verdict::Denied(_) => Err("the token is not valid".to_owned()),
        };
        self.state().users.put(id, user.clone(), kept(user.is_ok()), now);
        user
    }

    /// Returns whether a user may read something.
    async fn allow(
        &self,
        user: &User,
        wish: &Wish,
        now: Moment,
        ends: Instant,
    ) -> Result<(), String> {
        let question = (user.clone(), wish.clone());
        if let Some(known) = self.state().allowed.get(&question, now) {
            return known;
        }
        let allowed = match self.ask(Review::Access(user.clone(), wish.clone()), ends).await? {
            Verdict::Allowed => Ok(()),
            Verdict::Denied(why) => Err(why),
            Verdict::User(_) => Err(String::new()),
        };
        let keep = kept(allowed.is_ok());
        self.state().allowed.put(question, allowed.clone(), keep, now);
        allowed
    }

    /// Asks the API server. Without an answer, the client learns only that there is none.
    async fn ask(&self, review: Review, ends: Instant) -> Result<Verdict, String> {
        let what = match &review {
            Review::Token(_) => "TokenReview",
            Review::Access(..) => "SubjectAccessReview",
        };
        let late = |_| Err(format!("no answer within {} s", ADMIT_MAX.as_secs()));
        let answered = timeout_at(ends, (self.delegate.ask)(review)).await;
        answered.unwrap_or_else(late).map_err(|error| {
            let now = os::clock::now();
            let mut state = self.state();
            if state.logged.is_none_or(|at| now.since(at) >= LOG_EVERY) {
                state.logged = Some(now);
                tracing::warn!(
                    %error,
                    "a client of the external metrics API was refused: the API server did not answer a {what}; \
                     check Weir's connection to it, and the ClusterRoleBinding to system:auth-delegator"
                );
            }
            format!("the API server did not answer a {what} of Weir, whose log says why")
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the front proxy's authority, which is read again when it has changed.
    fn authority(&mut self, front_proxy: &Arc<FrontProxy>) -> Result<ClientAuthority, String> {
        if let Some((of, authority)) = &self.authority
            && Arc::ptr_eq(of, front_proxy)
        {
            return authority.clone();
        }
        let authority = ClientAuthority::new(&front_proxy.authorities);
        let authority = authority.map_err(|mistake| mistake.message);
        self.authority = Some((Arc::clone(front_proxy), authority.clone()));
        authority
    }
}

fn kept(is_allowed: bool) -> Duration {
    if is_allowed { ALLOWED_KEPT } else { DENIED_KEPT }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use tokio::sync::watch;

    use super::*;

    /// Returns an admission where `right` is a token, and how often the API server was asked.
    fn admission() -> (Admission, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let ask: super::super::Ask = Arc::new(move |review| {
            counted.fetch_add(1, Relaxed);
            Box::pin(async move {
                Ok(match review {
                    Review::Token(token) if token == "slow" => std::future::pending().await,
                    Review::Token(token) if token == "right" => Verdict::User(User::default()),
                    Review::Token(_) => Verdict::Denied(String::new()),
                    Review::Access(..) => Verdict::Allowed,
                })
            })
        });
        let (_, front_proxy) = watch::channel(None);
        (Admission::new(Delegate { ask, front_proxy }), asked)
    }

    #[tokio::test]
    async fn answers_count_for_a_while_and_refusals_for_less() {
        let (admission, asked) = admission();
        let ends = Instant::now() + Duration::from_hours(1);
        let at = |seconds| Moment::ZERO + Duration::from_secs(seconds);
        for (token, second, expected) in
            [("right", 0, 1), ("right", 9, 1), ("wrong", 9, 2), ("wrong", 10, 2), ("wrong", 11, 3)]
        {
            let user = admission.user(token.to_owned(), at(second), ends).await;
            assert_eq!(user.is_ok(), token == "right");
            assert_eq!(asked.load(Relaxed), expected, "{token} at {second}");
        }
        let wish = Wish::Path("/apis".to_owned());
        for (second, expected) in [(0, 4), (9, 4), (10, 5)] {
            admission.allow(&User::default(), &wish, at(second), ends).await.unwrap();
            assert_eq!(asked.load(Relaxed), expected, "access at {second}");
        }
    }

    #[tokio::test]
    async fn a_question_without_an_answer_ends() {
        let (admission, _) = admission();
        let ends = Instant::now() + Duration::from_millis(10);
        let why = admission.user("slow".to_owned(), Moment::ZERO, ends).await.unwrap_err();
        assert!(why.starts_with("the API server did not answer a TokenReview"), "{why}");
        assert!(Instant::now() >= ends);
    }
}
