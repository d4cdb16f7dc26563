//! An HTTP server that answers in the format of Prometheus's HTTP-based service discovery, asked at an
//! interval.

use std::sync::Arc;
use std::time::Duration;

use discovery::prometheus;
use model::HttpPeer;
use tls::rustls::ClientConfig;
use transport::client::{Connection, ExchangeLimits, Request};

use super::parsed;
use super::report::Sink;

/// Maximum time for resolving the server's name, and for connecting to one of its addresses.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Maximum time of a request.
const EXCHANGE_MAX: Duration = Duration::from_secs(30);
/// Maximum size of an answer.
const BODY_MAX_BYTES: usize = 8 << 20;
/// Intervals are drawn from 1 ± this share, so that balancers do not ask in step.
const JITTER_SHARE: f64 = 0.1;

/// Reports the targets that the server lists, now and at each interval.
pub(super) async fn watch(peer: HttpPeer, interval: Duration, port: Option<u16>, sink: Sink) {
    let mut rng = fastrand::Rng::new();
    let tls = tls::to_peer(&peer, &[b"http/1.1"]);
    let tls = tls.map_err(|mistake| mistake.to_string());
    loop {
        let answer = match &tls {
            Ok(tls) => ask(&peer, tls.as_ref()).await,
            Err(why) => Err(why.clone()),
        };
        let arrived = os::clock::now();
        let (options, object) = (prometheus::Options { port }, peer.url.without_query());
        let found = match answer {
            Ok(body) => parsed(body, move |body| prometheus::json(body, &object, &options)).await,
            Err(why) => Err(why),
        };
        sink.send(arrived, found.map(|answer| (answer, None))).await;
        let factor = 1.0 + JITTER_SHARE * (2.0 * rng.f64() - 1.0);
        tokio::time::sleep(interval.mul_f64(factor)).await;
    }
}

async fn ask(peer: &HttpPeer, tls: Option<&Arc<ClientConfig>>) -> Result<Vec<u8>, String> {
    let connection = Connection::to(&peer.url, tls, CONNECT_MAX, EXCHANGE_MAX).await;
    let mut connection = connection.map_err(|error| error.to_string())?;
    let fields = [
        ("Accept", "application/json"),
        ("User-Agent", concat!("weir/", env!("CARGO_PKG_VERSION"))),
        ("Connection", "close"),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let (path, host) = (peer.url.target(), peer.url.authority());
    let request = Request { method: "GET", path, host, fields: &fields, body: &[] };
    let limits = ExchangeLimits { timeout: EXCHANGE_MAX, body_max_bytes: BODY_MAX_BYTES };
    let response = connection.exchange(&request, &limits).await;
    let response = response.map_err(|error| format!("{}: {error}", peer.url.authority()))?;
    match response.status {
        200 if response.truncated => {
            Err(format!("the answer has more than {BODY_MAX_BYTES} bytes"))
        }
        200 => Ok(response.body),
        status => Err(format!("{} answers {status}", peer.url.authority())),
    }
}
