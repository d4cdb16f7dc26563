//! Carries the ACME client's requests, on Weir's own small HTTP client.
//!
//! `instant-acme` wants futures that may move between threads; Weir's connections stay on theirs.
//! So a task of that thread performs the requests, one after the other, and a [`Http`] passes them
//! to it. Only `https` is spoken (RFC 8555 section 6.1). Every wait and every size is bounded.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderName, HeaderValue, Request, Uri};
use http_body::Body as _;
use httpdate::HttpDate;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use model::HttpUrl;
use tls::rustls::ClientConfig;
use tokio::sync::{mpsc, oneshot};
use transport::client::{ClientError, ConnectError, Connection, ExchangeLimits, Response};

use crate::backoff::RETRY_AFTER_MAX_S;

/// Maximum time for resolving the authority's name, and for connecting to one of its addresses.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Maximum time of an exchange. Authorities answer POSTs within seconds.
const EXCHANGE_MAX: Duration = Duration::from_secs(30);
/// Maximum size of a response: a chain, or an order with a hundred names, takes 20 kB.
const BODY_MAX_BYTES: usize = 256 * 1024;
/// Requests that wait. The ACME client sends one at a time.
const CALLS_WAITING_MAX: usize = 4;

/// RFC 8555 section 6.1 wants the client's name and that of its library.
const AGENT: &str = concat!("weir/", env!("CARGO_PKG_VERSION"), " instant-acme");

/// Passes requests to the task that performs them.
#[derive(Clone)]
pub(crate) struct Http {
    calls: mpsc::Sender<Call>,
    retry_after_s: Arc<Mutex<Option<i64>>>,
}

/// The task's end.
pub(crate) struct Performer {
    calls: mpsc::Receiver<Call>,
    tls: Arc<ClientConfig>,
    retry_after_s: Arc<Mutex<Option<i64>>>,
}

/// The last connection, while it is open, and the authority that it leads to. It stays on its thread.
type Kept = Option<(String, Connection)>;

struct Call {
    request: Request<BodyWrapper<Bytes>>,
    reply: oneshot::Sender<Result<BytesResponse, HttpError>>,
}

/// Why there is no usable response: the authority cannot be reached, or what answers is not an ACME
/// server. Displays as part of a line.
#[derive(Debug)]
pub(crate) enum HttpError {
    /// This URL cannot be requested.
    Url(String),
    /// No connection.
    Connect(ConnectError),
    /// The exchange failed.
    Exchange { host: String, error: ClientError },
    /// The response is longer than any of ACME.
    TooLarge { host: String },
    /// A status that is not the protocol's.
    Status { host: String, status: u16, location: Option<String> },
    /// The thread is ending.
    Stopped,
}

impl Http {
    /// Returns the two ends. `tls` verifies the authority's certificate.
    pub(crate) fn new(tls: Arc<ClientConfig>) -> (Http, Performer) {
        let (sender, calls) = mpsc::channel(CALLS_WAITING_MAX);
        let retry_after_s = Arc::<Mutex<Option<i64>>>::default();
        let http = Http { calls: sender, retry_after_s: Arc::clone(&retry_after_s) };
        (http, Performer { calls, tls, retry_after_s })
    }

    /// Returns in how many seconds the authority wants to be asked again, if the last response was
    /// an error that said so; at most [`RETRY_AFTER_MAX_S`].
    pub(crate) fn retry_after_s(&self) -> Option<i64> {
        *self.retry_after_s.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpClient for Http {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let calls = self.calls.clone();
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let stopped = || Error::Other(Box::new(HttpError::Stopped));
            calls.send(Call { request, reply }).await.map_err(|_| stopped())?;
            let answer = answer.await.map_err(|_| stopped())?;
            answer.map_err(|error| Error::Other(Box::new(error)))
        })
    }
}

impl Performer {
    /// Performs requests until the last [`Http`] is dropped. A request that its sender no longer
    /// waits for is cut off.
    pub(crate) async fn run(mut self) {
        let mut kept = None;
        while let Some(Call { request, mut reply }) = self.calls.recv().await {
            let result = tokio::select! {
                result = self.perform(request, &mut kept) => result,
                () = reply.closed() => continue,
            };
            let _ = reply.send(result);
        }
    }

    async fn perform(
        &self,
        request: Request<BodyWrapper<Bytes>>,
        kept: &mut Kept,
    ) -> Result<BytesResponse, HttpError> {
        let (parts, mut body) = request.into_parts();
        let target = target(&parts.uri)?;
        let mut bytes = Vec::new();
        while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        }
        let named = parts.headers.iter().filter(|(name, _)| **name != USER_AGENT);
        let mut fields: Vec<(String, String)> = named
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
            .collect();
        fields.push((USER_AGENT.to_string(), AGENT.to_owned()));
        let request = transport::client::Request {
            method: parts.method.as_str(),
            path: target.target(),
            host: target.authority(),
            fields: &fields,
            body: &bytes,
        };
        let (connection, response) = self.exchange(&target, &request, kept.take()).await?;
        let answer = self.answer(&target, parts.method == "GET", &connection, response);
        *kept = connection.reusable().then(|| (target.authority().to_owned(), connection));
        answer
    }

    /// Performs an exchange on the kept connection, or on a new one if there is none, or if the
    /// server has closed it in the meantime.
    async fn exchange(
        &self,
        target: &HttpUrl,
        request: &transport::client::Request<'_>,
        kept: Kept,
    ) -> Result<(Connection, Response), HttpError> {
        let limits = ExchangeLimits { timeout: EXCHANGE_MAX, body_max_bytes: BODY_MAX_BYTES };
        let failed = |error| HttpError::Exchange { host: target.authority().to_owned(), error };
        if let Some((authority, mut connection)) = kept
            && authority == target.authority()
            && connection.reusable()
        {
            match connection.exchange(request, &limits).await {
                Ok(response) => return Ok((connection, response)),
                // The request was not performed, or its nonce is used up and it is refused.
                Err(ClientError::Closed { kept: true, .. }) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let connection = Connection::to(target, Some(&self.tls), CONNECT_MAX, EXCHANGE_MAX).await;
        let mut connection = connection.map_err(HttpError::Connect)?;
        let response = connection.exchange(request, &limits).await.map_err(failed)?;
        Ok((connection, response))
    }

    /// Converts a response, and notes when the authority wants to be asked again. `is_get`: what is
    /// fetched without a signature, where errors are no documents that the ACME client reads.
    fn answer(
        &self,
        target: &HttpUrl,
        is_get: bool,
        connection: &Connection,
        response: Response,
    ) -> Result<BytesResponse, HttpError> {
        let host = || target.authority().to_owned();
        let head = connection.head();
        let text = |name: &str| head.field(name).and_then(|value| str::from_utf8(value).ok());
        let retry_after_s = text(RETRY_AFTER.as_str()).and_then(retry_after_s);
        let is_error = response.status >= 300;
        *self.retry_after_s.lock().unwrap_or_else(PoisonError::into_inner) =
            retry_after_s.filter(|_| is_error);
        if response.truncated {
            return Err(HttpError::TooLarge { host: host() });
        }
        let is_problem = text(CONTENT_TYPE.as_str()).is_some_and(|media| media.contains("json"));
        if is_error && (is_get || !is_problem) {
            let location = text("location").map(str::to_owned);
            return Err(HttpError::Status { host: host(), status: response.status, location });
        }
        let mut converted = http::Response::new(());
        *converted.status_mut() = http::StatusCode::from_u16(response.status).map_err(|_| {
            HttpError::Status { host: host(), status: response.status, location: None }
        })?;
        for field in head.fields() {
            let name = HeaderName::from_bytes(field.name);
            let value = HeaderValue::from_bytes(field.value);
            if let (Ok(name), Ok(value)) = (name, value)
                && name != RETRY_AFTER
            {
                converted.headers_mut().append(name, value);
            }
        }
        // In bounded seconds: the ACME client adds them to the time without a check.
        if let Some(seconds) = retry_after_s {
            converted.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        let (parts, ()) = converted.into_parts();
        Ok(BytesResponse { parts, body: Box::new(Bytes::from(response.body)) })
    }
}

/// Returns whether `url` can be that of a directory.
pub(crate) fn is_usable(url: &str) -> bool {
    Uri::from_str(url).is_ok_and(|uri| target(&uri).is_ok())
}

fn target(uri: &Uri) -> Result<HttpUrl, HttpError> {
    let url = HttpUrl::try_from(uri).ok().filter(HttpUrl::is_https);
    url.ok_or_else(|| HttpError::Url(crate::text::foreign(&uri.to_string())))
}

/// Returns the seconds of a `Retry-After` (RFC 9110 section 10.2.3), at most [`RETRY_AFTER_MAX_S`].
fn retry_after_s(value: &str) -> Option<i64> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        return Some(value.parse().map_or(RETRY_AFTER_MAX_S, |s: i64| s.min(RETRY_AFTER_MAX_S)));
    }
    let date = std::time::SystemTime::from(HttpDate::from_str(value).ok()?);
    let at_s = date.duration_since(UNIX_EPOCH).ok()?.as_secs().cast_signed();
    let wait_s = at_s.saturating_sub(os::clock::wall().as_secs().cast_signed());
    Some(wait_s.clamp(0, RETRY_AFTER_MAX_S))
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HttpError::Url(url) => write!(f, "the URL {url} is not usable; it must be https"),
            HttpError::Connect(error) => error.fmt(f),
            HttpError::Exchange { host, error } => write!(f, "{host}: {error}"),
            HttpError::TooLarge { host } => {
                write!(f, "{host} sent a response of more than {BODY_MAX_BYTES} bytes")
            }
            HttpError::Status { host, status, location: Some(location) } => {
                write!(f, "{host} answered {status} and redirects to {location}; use that URL")
            }
            HttpError::Status { host, status, location: None } => {
                write!(f, "{host} answered {status}; is it the URL of an ACME directory?")
            }
            HttpError::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for HttpError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_urls_without_credentials_are_usable() {
        for url in ["https://acme.example/dir", "https://[::1]:14000/dir", "https://192.0.2.1"] {
            assert!(is_usable(url), "{url}");
        }
        for url in ["http://acme.example/dir", "/dir", "", "https://", "ftp://x/", "https://u@x/"] {
            assert!(!is_usable(url), "{url}");
        }
    }

    #[test]
    fn retry_after_is_bounded_whatever_it_says() {
        for (value, expected) in [
            ("120", Some(120)),
            ("0", Some(0)),
            ("18446744073709551616", Some(RETRY_AFTER_MAX_S)),
            ("9999999999", Some(RETRY_AFTER_MAX_S)),
            ("Fri, 31 Dec 1999 23:59:59 GMT", Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(RETRY_AFTER_MAX_S)),
            ("-5", None),
            ("", None),
            ("soon", None),
        ] {
            assert_eq!(retry_after_s(value), expected, "{value}");
        }
    }
}
