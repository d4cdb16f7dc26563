//! One fetch of a key set. Every wait and every size is bounded.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use identity::keys::KEY_SET_MAX_BYTES;
use identity::{BadKeySet, KeySet, Secrets};
use model::HttpPeer;
use observe::truncate;
use rustls::ClientConfig;
use tls::Mistake;
use transport::client::{ClientError, ConnectError, Connection, ExchangeLimits, Request};
use wire::http1::ResponseHead;

/// Maximum time of a fetch.
pub(crate) const FETCH_MAX: Duration = Duration::from_secs(10);
/// Maximum time for resolving the issuer's name, and for connecting to one of its addresses, so that some is
/// left for others.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// Maximum of a redirect's target in a message.
const LOCATION_MAX_BYTES: usize = 400;

/// A key set as it came.
pub(super) struct Contents {
    pub(super) keys: KeySet,
    pub(super) bytes: Vec<u8>,
    /// For how long the response says that it is fresh.
    pub(super) max_age: Option<Duration>,
}

/// Why no key set came.
#[derive(Debug)]
pub(super) enum FetchError {
    Connect(ConnectError),
    Exchange(ClientError),
    TooSlow,
    TooLarge,
    Status { status: u16, location: Option<String> },
    Contents(BadKeySet),
}

/// Returns how the issuer's certificate is verified; `None`: its URL is not https.
pub(super) fn tls(source: &HttpPeer) -> Result<Option<Arc<ClientConfig>>, Mistake> {
    tls::to_peer(source, &[b"http/1.1"])
}

/// Fetches a key set, within [`FETCH_MAX`]. Redirects are not followed.
pub(super) async fn fetch(
    source: &HttpPeer,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<Contents, FetchError> {
    let fetched = tokio::time::timeout(FETCH_MAX, exchange(source, tls)).await;
    fetched.unwrap_or(Err(FetchError::TooSlow))
}

async fn exchange(
    source: &HttpPeer,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<Contents, FetchError> {
    let url = &source.url;
    let connection = Connection::to(url, tls, CONNECT_MAX, FETCH_MAX).await;
    let mut connection = connection.map_err(FetchError::Connect)?;
    let fields = [
        ("Accept", "application/jwk-set+json, application/json"),
        ("User-Agent", concat!("weir/", env!("CARGO_PKG_VERSION"))),
    ];
    let request = Request {
        method: "GET",
        path: url.target(),
        host: url.authority(),
        fields: &fields.map(|(name, value)| (name.to_owned(), value.to_owned())),
        body: &[],
    };
    let limits = ExchangeLimits { timeout: FETCH_MAX, body_max_bytes: KEY_SET_MAX_BYTES };
    let response = connection.exchange(&request, &limits).await.map_err(FetchError::Exchange)?;
    let head = connection.head();
    if response.status != 200 {
        let location = text(head, "location").map(|to| to.escape_debug().to_string());
        return Err(FetchError::Status { status: response.status, location });
    }
    if response.truncated {
        return Err(FetchError::TooLarge);
    }
    // Symmetric keys never come from an issuer.
    let keys = KeySet::parse(&response.body, Secrets::Skipped).map_err(FetchError::Contents)?;
    Ok(Contents { keys, bytes: response.body, max_age: max_age(head) })
}

/// Returns how much longer the response is fresh (RFC 9111 section 4.2), if it says so.
fn max_age(head: &ResponseHead) -> Option<Duration> {
    let directives = text(head, "cache-control")?.split(',');
    let max_age = directives.filter_map(|directive| {
        let (name, value) = directive.trim().split_once('=')?;
        name.eq_ignore_ascii_case("max-age").then(|| value.trim_matches('"').parse().ok())?
    });
    // If there are several, the shortest is safe.
    let max_age: u64 = max_age.min()?;
    let age = text(head, "age").and_then(|age| age.trim().parse().ok()).unwrap_or(0);
    Some(Duration::from_secs(max_age.saturating_sub(age)))
}

fn text<'h>(head: &'h ResponseHead, name: &str) -> Option<&'h str> {
    head.field(name).and_then(|value| str::from_utf8(value).ok())
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchError::Connect(error) => error.fmt(f),
            FetchError::Exchange(error) => error.fmt(f),
            FetchError::TooSlow => write!(f, "it took longer than {} s", FETCH_MAX.as_secs()),
            FetchError::TooLarge => {
                write!(f, "the response has more than {KEY_SET_MAX_BYTES} bytes")
            }
            FetchError::Status { status, location: Some(location) } => write!(
                f,
                "the answer is {status}, a redirect to {}, which is not followed",
                String::from_utf8_lossy(truncate::cut(location.as_bytes(), LOCATION_MAX_BYTES))
            ),
            FetchError::Status { status, location: None } => {
                write!(f, "the answer is {status}; is it the URL of a key set (jwks_uri)?")
            }
            FetchError::Contents(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FetchError {}
