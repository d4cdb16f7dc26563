//! The members of etcd: requests to them, the user's token, and which member is asked first.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use discovery::etcd::{self, Keys, Reading};
use model::{Etcd, HttpPeer, Moment, Text};
use tls::rustls::ClientConfig;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::timeout;
use transport::client::{self, Connection, Incoming};

use crate::discover::parsed;

/// Maximum time for resolving a member's name, and for connecting to one of its addresses.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The same while there are other members to ask: a start waits only 5 s for all its sources.
const CONNECT_MAX_OF_MANY: Duration = Duration::from_millis(1500);
/// Maximum time for an answer: etcd itself gives up after about 7 seconds.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Maximum size of a list: some 10,000 keys.
const BODY_MAX_BYTES: usize = 16 << 20;
/// Maximum size that is read of a refusal.
const REFUSAL_MAX_BYTES: usize = 4096;
/// Lists at the same time. Watches have no such limit.
const LISTS_MAX: usize = 16;

/// The members of etcd, and what all watches know about them.
pub(in crate::discover) struct Client {
    members: Vec<Member>,
    user: Option<(Text, Text)>,
    /// The number of the member that is asked first.
    preferred: Cell<usize>,
    /// Proves who the user is, at any member.
    token: RefCell<Option<Rc<str>>>,
    /// Held while a token is fetched: checking a password costs etcd much, so one watch does it for all.
    authenticating: Mutex<()>,
    lists: Semaphore,
    /// When no member answered last, and why.
    absent: RefCell<Option<(Moment, String)>>,
    /// When the user could not be authenticated last, and why.
    not_authenticated: RefCell<Option<(Moment, String)>>,
}

struct Member {
    peer: HttpPeer,
    /// Why TLS cannot be set up, if so.
    tls: Result<Option<Arc<ClientConfig>>, String>,
}

/// Why a member did not do what it was asked.
pub(super) struct Failed {
    pub(super) why: String,
    /// The token is missing, or no longer valid.
    pub(super) needs_token: bool,
    /// It did not answer.
    is_absent: bool,
}

impl From<String> for Failed {
    fn from(why: String) -> Failed {
        Failed { why, needs_token: false, is_absent: false }
    }
}

pub(super) struct Request<'a> {
    pub(super) path: &'static str,
    pub(super) body: &'a [u8],
    pub(super) token: Option<Rc<str>>,
}

impl Client {
    pub(in crate::discover) fn new(etcd: &Etcd) -> Client {
        let members = etcd.endpoints.iter().map(|peer| Member {
            peer: peer.clone(),
            tls: tls::to_peer(peer, &[b"http/1.1"]).map_err(|mistake| mistake.to_string()),
        });
        Client {
            members: members.collect(),
            user: etcd.user.clone(),
            // Balancers that start together do not all ask the same member.
            preferred: Cell::new(fastrand::usize(..etcd.endpoints.len().max(1))),
            token: RefCell::default(),
            authenticating: Mutex::new(()),
            lists: Semaphore::new(LISTS_MAX),
            absent: RefCell::default(),
            not_authenticated: RefCell::default(),
        }
    }

    /// Returns the number of members.
    pub(super) fn members(&self) -> usize {
        self.members.len()
    }

    pub(super) fn token(&self) -> Option<Rc<str>> {
        self.token.borrow().clone()
    }

    /// Another member is to be asked first.
    pub(super) fn avoid(&self, member: usize) {
        if self.preferred.get() == member {
            self.preferred.set((member + 1) % self.members.len());
        }
    }

    /// Returns the keys of a prefix from the first member that lists them, the number of that member, and when its
    /// answer arrived.
    pub(super) async fn list(
        &self,
        prefix: &Arc<str>,
        reading: Reading,
    ) -> Result<(Keys, usize, Moment), String> {
        let begun = os::clock::now();
        // The semaphore is never closed.
        let Ok(_permit) = self.lists.acquire().await else { return Err(String::new()) };
        since(&self.absent, begun).map_or(Ok(()), Err)?;
        let mut failures = Vec::new();
        let mut are_absent = true;
        let first = self.preferred.get();
        for member in (0..self.members.len()).map(|step| (first + step) % self.members.len()) {
            match self.list_at(member, prefix, reading).await {
                Ok((keys, arrived)) => {
                    self.preferred.set(member);
                    self.absent.take();
                    return Ok((keys, member, arrived));
                }
                Err(failed) => {
                    are_absent &= failed.is_absent;
                    failures.push(failed.why);
                }
            }
        }
        let why = failures.join("; ");
        if are_absent {
            *self.absent.borrow_mut() = Some((os::clock::now(), why.clone()));
        }
        Err(why)
    }

    async fn list_at(
        &self,
        member: usize,
        prefix: &Arc<str>,
        reading: Reading,
    ) -> Result<(Keys, Moment), Failed> {
        let body = etcd::range_body(prefix);
        let mut request = Request { path: "/v3/kv/range", body: &body, token: self.token() };
        let answer = match self.post(member, &request).await {
            Err(failed) if failed.needs_token => {
                let token = self.authenticate(member, request.token.take(), failed).await?;
                request.token = Some(token);
                self.post(member, &request).await?
            }
            answer => answer?,
        };
        let arrived = os::clock::now();
        let prefix = Arc::clone(prefix);
        let listed = parsed(answer, move |bytes| Keys::listed(bytes, &prefix, reading)).await;
        Ok((listed.map_err(|why| self.failed(member, &request, &why))?, arrived))
    }

    /// Returns a token in place of `old`, which was refused: a new one, unless another watch has one.
    ///
    /// # Errors
    /// The user's name and password are refused, or not configured; then the error is `refused`.
    pub(super) async fn authenticate(
        &self,
        member: usize,
        old: Option<Rc<str>>,
        refused: Failed,
    ) -> Result<Rc<str>, Failed> {
        let Some((user, password)) = &self.user else { return Err(refused) };
        let begun = os::clock::now();
        let _authenticating = self.authenticating.lock().await;
        if let Some(token) = self.token().filter(|token| Some(token) != old.as_ref()) {
            return Ok(token);
        }
        if let Some(why) = since(&self.not_authenticated, begun) {
            return Err(why.into());
        }
        let body = etcd::credentials_body(user, password);
        let request = Request { path: "/v3/auth/authenticate", body: &body, token: None };
        let answer = self.post(member, &request).await;
        let token = answer.and_then(|answer| {
            etcd::token(&answer).map_err(|why| self.failed(member, &request, &why))
        });
        match token {
            Ok(token) => {
                let token: Rc<str> = token.into();
                *self.token.borrow_mut() = Some(Rc::clone(&token));
                Ok(token)
            }
            Err(failed) => {
                // All members know the same users. One that did not answer says nothing about this one.
                if !failed.is_absent {
                    let now = os::clock::now();
                    *self.not_authenticated.borrow_mut() = Some((now, failed.why.clone()));
                }
                Err(failed)
            }
        }
    }

    /// Returns a whole answer.
    async fn post(&self, member: usize, request: &Request<'_>) -> Result<Vec<u8>, Failed> {
        let mut connection = self.connect(member).await?;
        let exchange = async {
            let mut incoming = self.begin(member, &mut connection, request).await?;
            let mut answer = Vec::new();
            loop {
                let read = incoming.read(|piece| answer.extend_from_slice(piece)).await;
                if !read.map_err(|error| self.failed(member, request, &error.to_string()))? {
                    return Ok(answer);
                }
                if answer.len() > BODY_MAX_BYTES {
                    let why = format!("the answer has more than {BODY_MAX_BYTES} bytes");
                    return Err(self.failed(member, request, &why));
                }
            }
        };
        let late = |_| self.absent(member, request, "no complete answer in time");
        timeout(ANSWER_MAX, exchange).await.map_err(late)?
    }

    pub(super) async fn connect(&self, member: usize) -> Result<Connection, Failed> {
        let Member { peer, tls } = &self.members[member];
        let tls = tls.as_ref().map_err(Clone::clone)?;
        let step_max = if self.members.len() > 1 { CONNECT_MAX_OF_MANY } else { CONNECT_MAX };
        let connected = Connection::to(&peer.url, tls.as_ref(), step_max, ANSWER_MAX).await;
        connected.map_err(|error| Failed { is_absent: true, ..error.to_string().into() })
    }

    /// Sends a request, and returns its response if that has status 200.
    pub(super) async fn begin<'c>(
        &self,
        member: usize,
        connection: &'c mut Connection,
        request: &Request<'_>,
    ) -> Result<Incoming<'c>, Failed> {
        let mut fields = vec![
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("User-Agent".to_owned(), concat!("weir/", env!("CARGO_PKG_VERSION")).to_owned()),
            // A member without a leader ends the watch, in place of keeping silent.
            ("Grpc-Metadata-hasleader".to_owned(), "true".to_owned()),
        ];
        let token = request.token.as_ref();
        fields.extend(token.map(|token| ("Authorization".to_owned(), token.to_string())));
        let sent = client::Request {
            method: "POST",
            path: request.path,
            host: self.members[member].peer.url.authority(),
            fields: &fields,
            body: request.body,
        };
        let begun = timeout(ANSWER_MAX, connection.begin(&sent)).await;
        let begun = begun.map_err(|_| self.absent(member, request, "no answer in time"))?;
        let mut incoming =
            begun.map_err(|error| self.absent(member, request, &error.to_string()))?;
        let status = incoming.status();
        if status == 200 {
            return Ok(incoming);
        }
        let mut said = Vec::new();
        let whole = async {
            while said.len() < REFUSAL_MAX_BYTES {
                let read = incoming.read(|piece| said.extend_from_slice(piece)).await;
                if !matches!(read, Ok(true)) {
                    break;
                }
            }
        };
        // What has arrived in time is enough.
        let _ = timeout(ANSWER_MAX, whole).await;
        said.truncate(REFUSAL_MAX_BYTES);
        let (why, needs_token) =
            etcd::refusal(status, &said, |said| self.without_secrets(said, request));
        Err(Failed { needs_token, ..self.failed(member, request, &why) })
    }

    /// Returns the failure of a request that was not answered.
    fn absent(&self, member: usize, request: &Request<'_>, why: &str) -> Failed {
        Failed { is_absent: true, ..self.failed(member, request, why) }
    }

    /// Returns the failure of a request. `why` may have been written by the member.
    pub(super) fn failed(&self, member: usize, request: &Request<'_>, why: &str) -> Failed {
        let needs_token = etcd::needs_token(why);
        let why = self.without_secrets(why, request);
        let why = format!("{}: {why}", self.members[member].peer.url.authority());
        Failed { why, needs_token, is_absent: false }
    }

    /// Removes what is secret in a request, which the member or something on the way may repeat.
    fn without_secrets(&self, text: &str, request: &Request<'_>) -> String {
        let password = self.user.as_ref().map(|(_, password)| password.to_string());
        // As it is written in JSON, without the quotes.
        let escaped = password.as_ref().map(|it| it.replace('\\', "\\\\").replace('"', "\\\""));
        let token = request.token.as_ref().map(ToString::to_string);
        let secrets = [password, escaped, token].into_iter().flatten();
        secrets
            .filter(|secret| !secret.is_empty())
            .fold(text.to_owned(), |text, secret| text.replace(&secret, Text::SECRET))
    }
}

/// Returns the failure of another watch since this one waits: it would fail in the same way, after more time limits.
fn since(failure: &RefCell<Option<(Moment, String)>>, begun: Moment) -> Option<String> {
    let failure = failure.borrow();
    failure.as_ref().filter(|(at, _)| *at >= begun).map(|(_, why)| why.clone())
}
