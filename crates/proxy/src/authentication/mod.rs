//! What verifies the requests of routes that require an authentication; shared by all workers.

mod key_sets;
mod passwords;
mod queue;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use identity::token::Rules;
use identity::{Algorithm, Claim, Claims, KeySet, Secrets, SuccessCache, Users};
use model::{
    Authentication, AuthenticationScheme, HttpPeer, KeySource, Material, Snapshot, TokenRules,
};
use observe::exposition::KeySetGauges;

pub(crate) use key_sets::{Asked, FETCH_MAX, Fetched};
pub(crate) use passwords::{Checked, Passwords, Refused, Waiting};
pub(crate) use queue::Place;

use self::key_sets::KeySets;

/// How long a verified password is remembered. A user whose password is changed or removed is refused
/// at once, since the user's hash is part of what is remembered.
const SUCCESS_TTL: Duration = Duration::from_secs(60);
/// Remembered passwords: 200 kB.
const SUCCESSES_MAX: usize = 4_096;

/// What verifies the requests of one [`Authentication`].
pub(crate) enum Verifier {
    /// Names and passwords.
    Basic(Arc<Users>),
    /// Signed tokens.
    Token { keys: Keys, rules: Rules },
    /// A server is asked.
    Asked,
    /// Denies every request: the file that was checked cannot be used, which is a bug.
    Nothing,
}

/// The keys that verify tokens.
pub(crate) enum Keys {
    /// Those of a file.
    File(KeySet),
    /// Those of an issuer.
    Fetched(Arc<Fetched>),
}

/// Who sends a request: what servers and the access log receive about it.
pub(crate) struct Identity {
    /// The name of the user, the subject of the token, or what an authentication server says.
    pub(crate) user: Option<String>,
    /// Fields for the server: name in lower case, value.
    pub(crate) fields: Vec<(String, String)>,
    /// Whether the server receives the credentials.
    pub(crate) forwards_credentials: bool,
    /// Those of the token.
    pub(crate) claims: Option<Claims>,
    /// Fields of the authentication server for the client.
    pub(crate) response_fields: Vec<(String, Vec<u8>)>,
}

impl Identity {
    /// Returns a claim of the token, if it has that.
    pub(crate) fn claim(&self, path: &str) -> Option<Claim<'_>> {
        self.claims.as_ref()?.claim(path)
    }

    /// Returns the value of the field of this name, in lower case, which servers receive.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| &**value)
    }
}

/// All verifiers in use, and what is shared by them.
pub(crate) struct Authentications {
    made: Mutex<Vec<Made>>,
    /// Those of the configuration that was prepared last, which no worker may use yet.
    prepared: Mutex<Vec<Arc<Verifier>>>,
    pub(crate) passwords: Passwords,
    key_sets: KeySets,
}

/// A verifier and what it was made from. It belongs to those that use it: with the last of them it ends, and
/// so does the fetching of its keys.
struct Made {
    settings: Authentication,
    verifier: Weak<Verifier>,
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
        Authentications {
            made: Mutex::default(),
            prepared: Mutex::default(),
            passwords: Passwords::new(successes),
            key_sets: KeySets::new(),
        }
    }

    /// Makes the verifiers of a snapshot before it is published, so that workers find them: a large
    /// file takes longer to parse than a request should wait. Begins to fetch key sets.
    pub(crate) fn prepare(&self, snapshot: &Snapshot) {
        let verifiers = self.of(snapshot);
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *prepared, verifiers);
        // Large ones are freed without the lock.
        drop(prepared);
        drop(before);
    }

    /// Returns the verifiers of a snapshot, in its order of authentications.
    pub(crate) fn of(&self, snapshot: &Snapshot) -> Vec<Arc<Verifier>> {
        let verifiers = snapshot.authentications.iter().map(|settings| {
            // Files are parsed without the lock.
            self.find(settings).unwrap_or_else(|| {
                let verifier = self.make(settings);
                self.keep(settings, Arc::new(verifier))
            })
        });
        let verifiers = verifiers.collect();
        self.made().retain(|made| made.verifier.strong_count() > 0);
        verifiers
    }

    fn made(&self) -> MutexGuard<'_, Vec<Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, settings: &Authentication) -> Option<Arc<Verifier>> {
        found(&self.made(), settings)
    }

    /// Returns how the key sets of a snapshot's authentications are fetched.
    pub(crate) fn key_sets(&self, snapshot: &Snapshot) -> Vec<KeySetGauges> {
        let all = snapshot.authentications.iter();
        let fetched = all.filter_map(|settings| match &*self.find(settings)? {
            Verifier::Token { keys: Keys::Fetched(fetched), .. } => {
                Some(fetched.gauges(&settings.name))
            }
            _ => None,
        });
        fetched.collect()
    }

    /// Returns the users of a file that another authentication has parsed.
    fn find_users(&self, file: &Material) -> Option<Arc<Users>> {
        self.made().iter().find_map(|made| {
            match (&made.settings.scheme, &*made.verifier.upgrade()?) {
                (AuthenticationScheme::Basic { users }, Verifier::Basic(parsed))
                    if users == file =>
                {
                    Some(Arc::clone(parsed))
                }
                _ => None,
            }
        })
    }

    /// Returns the key set of an issuer: the one that another authentication uses, or a new one.
    fn find_key_set(&self, source: &HttpPeer) -> Option<Arc<Fetched>> {
        let fetched = self.fetched();
        if let Some(same) = fetched.iter().find(|fetched| fetched.source() == source) {
            return Some(Arc::clone(same));
        }
        // If only the contents of the file with the trusted authorities have changed, the issuer is the same,
        // and may be out of reach just now.
        let path = |source: &HttpPeer| source.ca.as_ref().map(|ca| ca.path.clone());
        let is_same = |other: &HttpPeer| other.url == source.url && path(other) == path(source);
        let earlier = fetched.iter().find(|fetched| is_same(fetched.source()));
        self.key_sets.follow(source, earlier.and_then(|earlier| earlier.keys())).map(Arc::new)
    }

    /// Returns the key sets in use that are fetched.
    fn fetched(&self) -> Vec<Arc<Fetched>> {
        let made = self.made();
        let fetched = made.iter().filter_map(|made| match &*made.verifier.upgrade()? {
            Verifier::Token { keys: Keys::Fetched(fetched), .. } => Some(Arc::clone(fetched)),
            _ => None,
        });
        fetched.collect()
    }

    /// Adds a verifier, and returns it or the one that another thread has made meanwhile.
    fn keep(&self, settings: &Authentication, verifier: Arc<Verifier>) -> Arc<Verifier> {
        let mut made = self.made();
        if let Some(other) = found(&made, settings) {
            return other;
        }
        made.push(Made { settings: settings.clone(), verifier: Arc::downgrade(&verifier) });
        verifier
    }

    /// Returns the verifier of an authentication.
    fn make(&self, settings: &Authentication) -> Verifier {
        let made = match &settings.scheme {
            AuthenticationScheme::Basic { users } => {
                let parse = || Users::parse(&users.bytes).ok().map(Arc::new);
                self.find_users(users).or_else(parse).map(Verifier::Basic)
            }
            AuthenticationScheme::Token(settings) => {
                let secrets =
                    if settings.symmetric_keys { Secrets::Accepted } else { Secrets::Skipped };
                let keys = match &settings.keys {
                    KeySource::File(file) => {
                        KeySet::parse(&file.bytes, secrets).ok().map(Keys::File)
                    }
                    KeySource::Issuer(source) => self.find_key_set(source).map(Keys::Fetched),
                };
                keys.map(|keys| Verifier::Token { keys, rules: rules(settings) })
            }
            AuthenticationScheme::Forward(_) => Some(Verifier::Asked),
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

impl Verifier {
    /// Returns whether what was verified with `before` is still true of `user`: it exists and has the
    /// same hash.
    pub(crate) fn still_has(&self, user: &str, before: &Users) -> bool {
        match self {
            Verifier::Basic(users) => users.has_same_hash(before, user),
            Verifier::Token { .. } | Verifier::Asked | Verifier::Nothing => false,
        }
    }
}

/// Returns the verifier that was made from these settings.
fn found(made: &[Made], settings: &Authentication) -> Option<Arc<Verifier>> {
    let mut same = made.iter().filter(|made| made.settings == *settings);
    same.find_map(|made| made.verifier.upgrade())
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
