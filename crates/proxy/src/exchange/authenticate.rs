//! Authenticates requests.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use identity::challenge::{self, BearerError};
use identity::token::{self, Denied, Rules};
use identity::{Claims, Credentials, Users, authorization, header_value};
use model::{
    Authentication, AuthenticationId, AuthenticationScheme, Cause, IdentityField, IdentityValue,
    LimitScope,
};
use wire::http1::Known;

use super::Exchange;
use crate::answer::Answer;
use crate::authentication::{
    Asked, Checked, FETCH_MAX, Fetched, Identity, Keys, Place, Refused, Verifier, Waiting,
};
use crate::client::{Client, client_gone};

/// How long a request waits for the verification of its password. A hash takes up to two seconds, so
/// with slow hashes and few threads not all that wait in the queue are verified by then.
const VERIFICATION_MAX: Duration = Duration::from_secs(10);

/// The fetches of a key set that a request waits for: the one that is running when it comes, and one for it.
const FETCHES_AWAITED_MAX: u32 = 2;

/// Why a request is refused.
struct Denial {
    status: u16,
    cause: Cause,
    /// For the access log.
    detail: &'static str,
    /// The value of WWW-Authenticate.
    challenge: String,
}

impl Exchange<'_> {
    /// Authenticates the request, and records who sends it.
    pub(super) async fn authenticate(&mut self, id: AuthenticationId) -> Result<(), Answer> {
        let plane = self.plane;
        let settings = plane.published.snapshot.authentication(id);
        if let AuthenticationScheme::Forward(rules) = &settings.scheme {
            // Boxed: passwords and tokens need much less.
            let identity = Box::pin(self.by_server(settings, rules)).await?;
            self.authenticated(identity);
            return Ok(());
        }
        let identity = match &*plane.verifiers[id.0 as usize] {
            Verifier::Basic(users) => self.by_password(settings, users).await,
            Verifier::Token { keys, rules } => self.by_token(settings, keys, rules).await,
            Verifier::Asked | Verifier::Nothing => {
                Err(unauthenticated(settings, "no verifier", None))
            }
        };
        match identity {
            Ok(identity) => {
                self.authenticated(identity);
                Ok(())
            }
            Err(Denial { status, cause, detail, challenge }) => {
                let challenge = (!challenge.is_empty()).then_some(challenge);
                let passes_soon = matches!(
                    cause,
                    Cause::AuthenticationOverloaded | Cause::AuthenticationUnavailable
                );
                let retry_after = passes_soon.then_some(Duration::from_secs(1));
                Err(Answer { status, detail, retry_after, challenge, ..Answer::of(cause) })
            }
        }
    }

    fn authenticated(&mut self, identity: Identity) {
        self.record.user.clone_from(&identity.user);
        self.identity = Some(Rc::new(identity));
    }

    async fn by_password(
        &mut self,
        settings: &Authentication,
        users: &Arc<Users>,
    ) -> Result<Identity, Denial> {
        let deny = |detail| unauthenticated(settings, detail, None);
        let credentials = self.authorization().map_err(deny)?;
        let credentials =
            authorization::basic(credentials).map_err(|unusable| deny(unusable.reason()))?;
        let user = credentials.user().to_owned();
        self.verify_password(settings, users, credentials).await?.map_err(deny)?;
        if !self.is_still_user(settings, users, &user) {
            return Err(deny("user_changed"));
        }
        let value = |field: &IdentityField| match field.value {
            IdentityValue::User => Ok(Some(header_value::check(&user)?.to_owned())),
            IdentityValue::Claim(_) | IdentityValue::Response => Ok(None),
        };
        let fields = identity_fields(settings, value)?;
        let forwards_credentials = settings.forwards_credentials;
        Ok(Identity {
            user: Some(user),
            fields,
            forwards_credentials,
            claims: None,
            response_fields: Vec::new(),
        })
    }

    /// Returns once the password is known to be right. The inner result has the reason for a refusal.
    async fn verify_password(
        &mut self,
        settings: &Authentication,
        users: &Arc<Users>,
        credentials: Credentials,
    ) -> Result<Result<(), &'static str>, Denial> {
        let rates = self.worker.shared.registry.rate();
        let place = Place {
            authentication: decide::hash_key(settings.name.as_bytes()),
            client: rates.part_key(LimitScope::Balancer).of_client(self.address.ip()),
        };
        let passwords = &self.worker.shared.authentications.passwords;
        match passwords.check(users, credentials, place, os::clock::now()) {
            Ok(Checked::Known) => Ok(Ok(())),
            Ok(Checked::Waiting(verdict)) => self.wait_for_verdict(verdict).await,
            Err(Refused(detail)) => Err(overloaded(detail)),
        }
    }

    /// Waits for the verdict on a password.
    async fn wait_for_verdict(
        &mut self,
        verdict: Waiting,
    ) -> Result<Result<(), &'static str>, Denial> {
        match self.wait_for(verdict, VERIFICATION_MAX).await? {
            Some(Ok(Ok(verdict))) if verdict.is_accepted() => Ok(Ok(())),
            Some(Ok(Ok(verdict))) => Ok(Err(verdict.reason())),
            Some(Ok(Err(Refused(detail)))) => Err(overloaded(detail)),
            Some(Err(_)) => Err(overloaded("the verification ended without a verdict")),
            None => Err(overloaded("the verification took too long")),
        }
    }

    /// Waits for `work` as long as the client does; `None`: it took longer than `max`.
    async fn wait_for<T>(
        &mut self,
        work: impl Future<Output = T>,
        max: Duration,
    ) -> Result<Option<T>, Denial> {
        let Client { stream, buffer, watchdog, .. } = &mut *self.client;
        let mut work = pin!(work);
        let waiting = poll_fn(|cx| match client_gone(stream, buffer, false, cx) {
            Poll::Ready(cause) => Poll::Ready(Err(cause)),
            Poll::Pending => work.as_mut().poll(cx).map(Ok),
        });
        let gone = |cause: Cause| Denial {
            status: cause.status(),
            cause,
            detail: "",
            challenge: String::new(),
        };
        watchdog.until(os::clock::now() + max, waiting).await.transpose().map_err(gone)
    }

    /// Returns whether a user who was verified with `users` is still one of the authentication: a
    /// configuration that was published since the request arrived may have other users.
    fn is_still_user(&self, settings: &Authentication, users: &Users, user: &str) -> bool {
        let now = self.worker.plane();
        if Arc::ptr_eq(&now.published, &self.plane.published) {
            return true;
        }
        let mut authentications = now.published.snapshot.authentications.iter();
        let at = authentications.position(|other| other.name == settings.name);
        at.is_some_and(|at| now.verifiers[at].still_has(user, users))
    }

    async fn by_token(
        &mut self,
        settings: &Authentication,
        keys: &Keys,
        rules: &Rules,
    ) -> Result<Identity, Denial> {
        let verified = match keys {
            Keys::File(keys) => {
                token::verify(self.token(settings)?, keys, rules, os::clock::wall().as_secs())
            }
            Keys::Fetched(fetched) => self.verify_by_issuer(settings, fetched, rules).await?,
        };
        let claims = verified.map_err(|denied| {
            let error = BearerError::InvalidToken(denied.description());
            unauthenticated(settings, denied.reason(), Some(error))
        })?;
        check_claims(settings, &claims)?;
        let value = |field: &IdentityField| match &field.value {
            IdentityValue::User | IdentityValue::Response => Ok(None),
            IdentityValue::Claim(path) => Ok(claims.header_value(path)?.map(Cow::into_owned)),
        };
        let fields = identity_fields(settings, value)?;
        // RFC 7519 section 4.1.2: one text.
        let subject = claims.subject().map(str::to_owned);
        let forwards_credentials = settings.forwards_credentials;
        Ok(Identity {
            user: subject,
            fields,
            forwards_credentials,
            claims: Some(claims),
            response_fields: Vec::new(),
        })
    }

    /// Verifies the request's token by the keys of its issuer. If it names none of them, the issuer may have
    /// new ones: then the request waits for a fetch, if there may be one now.
    async fn verify_by_issuer(
        &mut self,
        settings: &Authentication,
        fetched: &Fetched,
        rules: &Rules,
    ) -> Result<Result<Claims, Denied>, Denial> {
        let mut awaited = 0;
        loop {
            let token = self.token(settings)?;
            let keys = fetched.keys();
            let now_s = os::clock::wall().as_secs();
            let verified = keys.as_deref().map(|keys| token::verify(token, keys, rules, now_s));
            if !matches!(verified, None | Some(Err(Denied::UnknownKey { .. }))) {
                return verified.ok_or_else(no_keys);
            }
            match fetched.ask(keys.as_ref(), os::clock::now()) {
                Asked::Changed => {}
                Asked::Fetching(mut ended) if awaited < FETCHES_AWAITED_MAX => {
                    awaited += 1;
                    self.wait_for(ended.changed(), FETCH_MAX).await?;
                }
                Asked::Fetching(_) | Asked::Later => return verified.ok_or_else(no_keys),
            }
        }
    }

    /// Returns the request's token.
    fn token(&self, settings: &Authentication) -> Result<&str, Denial> {
        let deny = |detail| unauthenticated(settings, detail, None);
        let field = self.authorization().map_err(deny)?;
        authorization::bearer(field).map_err(|unusable| deny(unusable.reason()))
    }

    /// Returns the value of the request's only Authorization field.
    fn authorization(&self) -> Result<&[u8], &'static str> {
        let fields = self.scratch.request.fields();
        let mut values = fields.filter(|field| field.known == Known::Authorization);
        match (values.next(), values.next()) {
            (Some(field), None) => Ok(field.value),
            (None, _) => Err("no_credentials"),
            // Which of them a server behind Weir would read is unknown.
            (Some(_), Some(_)) => Err("several_credentials"),
        }
    }
}

/// Checks that a token has the claims that are required.
fn check_claims(settings: &Authentication, claims: &Claims) -> Result<(), Denial> {
    let AuthenticationScheme::Token(rules) = &settings.scheme else { return Ok(()) };
    if rules.claims.iter().all(|(path, value)| claims.contains(path, value)) {
        return Ok(());
    }
    let error = BearerError::InsufficientScope("The token does not allow this request");
    Err(Denial {
        challenge: challenge::bearer(&settings.realm, Some(error)),
        ..denied("claim_missing")
    })
}

/// Returns the fields for the server: those of which `value` returns a value.
fn identity_fields(
    settings: &Authentication,
    value: impl Fn(&IdentityField) -> Result<Option<String>, identity::Unfit>,
) -> Result<Vec<(String, String)>, Denial> {
    let mut fields = Vec::new();
    for field in &settings.identity_fields {
        // A value that a field cannot have may be an attack on the server.
        let value = value(field).map_err(|unfit| denied(unfit.reason()))?;
        fields.extend(value.map(|value| (field.name.clone(), value)));
    }
    Ok(fields)
}

/// The password was not verified.
fn overloaded(detail: &'static str) -> Denial {
    let cause = Cause::AuthenticationOverloaded;
    Denial { status: cause.status(), cause, detail, challenge: String::new() }
}

/// The keys that verify tokens have never been fetched.
fn no_keys() -> Denial {
    let cause = Cause::AuthenticationUnavailable;
    Denial { status: cause.status(), cause, detail: "no_keys", challenge: String::new() }
}

/// The request is refused, although it proves who sends it.
fn denied(detail: &'static str) -> Denial {
    let cause = Cause::HttpRequestDenied;
    Denial { status: cause.status(), cause, detail, challenge: String::new() }
}

/// The request does not prove who sends it. The client may try again with other credentials.
fn unauthenticated(
    settings: &Authentication,
    detail: &'static str,
    error: Option<BearerError<'_>>,
) -> Denial {
    let cause = Cause::Unauthenticated;
    let challenge = match settings.scheme {
        // Its server says what it requires.
        AuthenticationScheme::Forward(_) => String::new(),
        AuthenticationScheme::Basic { .. } => challenge::basic(&settings.realm),
        AuthenticationScheme::Token(_) => challenge::bearer(&settings.realm, error),
    };
    Denial { status: cause.status(), cause, detail, challenge }
}
