//! What verifies the requests of routes that require an authentication; shared by all workers.

mod passwords;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use identity::token::Rules;
use identity::{Algorithm, KeySet, Secrets, SuccessCache, Users};
use model::{Authentication, AuthenticationScheme, Snapshot, TokenRules};
use tls::Kept;

pub(crate) use passwords::{Passwords, Refused};

/// How long a verified password is remembered. A user whose password is changed or removed is refused
/// at once, since the user's hash is part of what is remembered.
const SUCCESS_TTL: Duration = Duration::from_secs(60);
/// Remembered passwords: 160 kB.
const SUCCESSES_MAX: usize = 4_096;

/// What verifies the requests of one [`Authentication`].
pub(crate) enum Verifier {
    /// Names and passwords.
    Basic(Arc<Users>),
    /// Signed tokens.
    Token { keys: KeySet, rules: Rules },
    /// Denies every request: the file that was checked cannot be used, which is a bug.
    Nothing,
}

/// Who sends a request: what servers and the access log receive about it.
pub(crate) struct Identity {
    /// The name of the user, or the subject of the token.
    pub(crate) user: Option<String>,
    /// Fields for the server: name in lower case, value.
    pub(crate) fields: Vec<(String, String)>,
    /// Whether the server receives the credentials.
    pub(crate) forwards_credentials: bool,
}

impl Identity {
    /// Returns the value of the field of this name, in lower case, which servers receive.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| &**value)
    }
}

/// All verifiers in use, and what is shared by them.
pub(crate) struct Authentications {
    verifiers: Mutex<Kept<Authentication, Verifier>>,
    pub(crate) passwords: Passwords,
}

impl Authentications {
    pub(crate) fn new() -> Authentications {
        let mut key = [0; 32];
        // Without a secret key, nothing is remembered.
        let ttl = match aws_lc_rs::rand::fill(&mut key) {
            Ok(()) => SUCCESS_TTL,
            Err(_) => Duration::ZERO,
        };
        let successes = SuccessCache::new(key, SUCCESSES_MAX, ttl);
        Authentications { verifiers: Mutex::default(), passwords: Passwords::new(successes) }
    }

    /// Returns the verifiers of a snapshot, in its order of authentications; those no longer in use are
    /// dropped.
    pub(crate) fn of(&self, snapshot: &Snapshot) -> Vec<Arc<Verifier>> {
        let mut verifiers = self.verifiers.lock().unwrap_or_else(PoisonError::into_inner);
        let made = snapshot.authentications.iter().map(|authentication| {
            let made = |settings: &Authentication| Ok(Arc::new(Verifier::new(settings)));
            let made = verifiers.get(authentication.clone(), made);
            made.unwrap_or_else(|_| Arc::new(Verifier::Nothing))
        });
        let made = made.collect();
        verifiers.forget_unused();
        made
    }
}

impl Verifier {
    fn new(settings: &Authentication) -> Verifier {
        let made = match &settings.scheme {
            AuthenticationScheme::Basic { users } => {
                Users::parse(&users.bytes).ok().map(|users| Verifier::Basic(Arc::new(users)))
            }
            AuthenticationScheme::Token(settings) => {
                let secrets =
                    if settings.symmetric_keys { Secrets::Accepted } else { Secrets::Skipped };
                let keys = KeySet::parse(&settings.keys.bytes, secrets).ok();
                keys.map(|keys| Verifier::Token { keys, rules: rules(settings) })
            }
        };
        made.unwrap_or_else(|| {
            tracing::error!(
                authentication = &*settings.name,
                "its file was checked and cannot be used: every request is refused; please report this"
            );
            Verifier::Nothing
        })
    }
}

fn rules(settings: &TokenRules) -> Rules {
    let TokenRules { algorithms, issuers, audiences, types, leeway, expiry_required, .. } =
        settings;
    let named: Vec<_> = algorithms.iter().filter_map(|name| Algorithm::parse(name)).collect();
    let usable = |algorithm: &Algorithm| settings.symmetric_keys || !algorithm.is_symmetric();
    Rules {
        algorithms: if named.is_empty() {
            Algorithm::ALL.into_iter().filter(usable).collect()
        } else {
            named
        },
        issuers: issuers.clone(),
        audiences: audiences.clone(),
        types: types.clone(),
        leeway: *leeway,
        requires_expiry: *expiry_required,
    }
}
