//! Requests to the collector, on one connection that is kept. Every wait and every size is bounded.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use model::{HttpUrl, Otlp};
use otlp::{Rejected, Signal};
use tls::rustls::ClientConfig;
use transport::client::{ClientError, ConnectError, Connection, ExchangeLimits, Request, Response};

/// Maximum time for resolving the collector's name, and for connecting to one of its addresses.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Maximum time of an exchange: that of OpenTelemetry's own SDKs (`OTEL_EXPORTER_OTLP_TIMEOUT`).
const EXCHANGE_MAX: Duration = Duration::from_secs(10);
/// Maximum size of a response. One that refuses items has some hundred bytes.
const BODY_MAX_BYTES: usize = 16 * 1024;
/// Maximum of a wait that a collector may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(5);

/// How a collector is reached.
pub(crate) struct Settings {
    endpoint: HttpUrl,
    tls: Option<Arc<ClientConfig>>,
    /// Without the query and a slash at its end.
    base: String,
    fields: Vec<(String, String)>,
}

/// A collector, and the connection to it, which stays on its thread.
pub(crate) struct Collector {
    settings: Settings,
    kept: Option<Connection>,
}

/// Why a message was not accepted.
#[derive(Debug)]
pub(crate) enum NotAccepted {
    /// The same message may be accepted later, not before this time has passed if the collector has named one.
    ForNow { why: Why, retry_after: Option<Duration> },
    /// It never will be.
    ForGood(Why),
}

/// The reason. Displays as part of a line.
#[derive(Debug)]
pub(crate) enum Why {
    Connect(ConnectError),
    Exchange(ClientError),
    Status { status: u16, said: String },
}

impl Settings {
    /// # Errors
    /// The collector's authorities cannot be used.
    pub(crate) fn of(otlp: &Otlp) -> io::Result<Settings> {
        let tls = otlp.collector.ca.clone().map(|ca| {
            let shown = ca.path.display().to_string();
            tls::own_client(ca).map_err(|mistake| {
                io::Error::other(format!("the collector's authorities in {shown}: {mistake}"))
            })
        });
        let own = [
            ("Content-Type", "application/x-protobuf"),
            ("User-Agent", concat!("weir/", env!("CARGO_PKG_VERSION"))),
        ];
        let is_own = |name: &str| own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let configured = otlp.fields.iter().filter(|(name, _)| !is_own(name));
        let configured = configured.map(|(name, value)| (name.clone(), value.to_string()));
        let own = own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Ok(Settings {
            endpoint: otlp.collector.url.clone(),
            tls: tls.transpose()?,
            base: otlp.collector.url.target().trim_end_matches('/').to_owned(),
            fields: own.chain(configured).collect(),
        })
    }
}

impl Collector {
    pub(crate) fn new(settings: Settings) -> Collector {
        Collector { settings, kept: None }
    }

    /// Returns its URL.
    pub(crate) fn url(&self) -> &HttpUrl {
        &self.settings.endpoint
    }

    /// Sends a message; returns what of it the collector did not want. It has at most 10 seconds, and some to
    /// connect.
    pub(crate) async fn send(
        &mut self,
        signal: Signal,
        body: &[u8],
    ) -> Result<Option<Rejected>, NotAccepted> {
        let Settings { endpoint, tls, base, fields } = &self.settings;
        let path = format!("{base}{}", signal.path());
        let request =
            Request { method: "POST", path: &path, host: endpoint.authority(), fields, body };
        let (connection, response) =
            exchange(endpoint, tls.as_ref(), self.kept.take(), &request).await?;
        let accepted = judge(&connection, &response);
        self.kept = connection.reusable().then_some(connection);
        accepted.map(|()| otlp::answer(signal, &response.body))
    }
}

/// Performs the exchange, on the kept connection if it is still good. A collector may close one at any time, so a
/// request that found it closed is sent again on a new one.
async fn exchange(
    endpoint: &HttpUrl,
    tls: Option<&Arc<ClientConfig>>,
    kept: Option<Connection>,
    request: &Request<'_>,
) -> Result<(Connection, Response), NotAccepted> {
    let limits = ExchangeLimits { timeout: EXCHANGE_MAX, body_max_bytes: BODY_MAX_BYTES };
    let for_now = |why| NotAccepted::ForNow { why, retry_after: None };
    if let Some(mut connection) = kept.filter(Connection::reusable) {
        match connection.exchange(request, &limits).await {
            Ok(response) => return Ok((connection, response)),
            Err(ClientError::Closed { .. }) => {}
            Err(error) => return Err(for_now(Why::Exchange(error))),
        }
    }
    let opened = Connection::to(endpoint, tls, CONNECT_MAX, EXCHANGE_MAX).await;
    let mut connection = opened.map_err(|error| for_now(Why::Connect(error)))?;
    let response = connection.exchange(request, &limits).await;
    Ok((connection, response.map_err(|error| for_now(Why::Exchange(error)))?))
}

/// Judges an answer as the specification of OTLP over HTTP says: these four statuses mean "later", all other
/// failures are final.
fn judge(connection: &Connection, response: &Response) -> Result<(), NotAccepted> {
    let status = response.status;
    if (200..300).contains(&status) {
        return Ok(());
    }
    let why = Why::Status { status, said: response.excerpt() };
    if !matches!(status, 429 | 502 | 503 | 504) {
        return Err(NotAccepted::ForGood(why));
    }
    let seconds = connection.head().field("retry-after");
    let seconds = seconds.and_then(|text| str::from_utf8(text).ok()?.trim().parse().ok());
    let retry_after = seconds.map(|s| Duration::from_secs(s).min(RETRY_AFTER_MAX));
    Err(NotAccepted::ForNow { why, retry_after })
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Connect(error) => error.fmt(f),
            Why::Exchange(error) => error.fmt(f),
            Why::Status { status, said } if said.is_empty() => write!(f, "status {status}"),
            Why::Status { status, said } => write!(f, "status {status}: {said}"),
        }
    }
}
