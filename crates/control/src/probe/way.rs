//! Opens the connections of a probe: like those of its service, except that the PROXY header
//! contains no client, and TLS resumes no session.

use std::sync::Arc;
use std::time::Duration;

use health::verdict::Failure;
use model::{Address, Cause, HttpVersion, ProbeIdentity, ProbeTls, ProxyVersion, ServiceTls};
use tls::rustls::ClientConfig;
use tls::rustls::client::Resumption;
use tls::rustls::pki_types::ServerName;
use tls::{Kept, Mistake};
use tokio::task::AbortHandle;
use transport::client::Connection;
use transport::dial::{self, DialError, DialOptions, dial_with};
use transport::http2::{Http2Client, StreamError};
use transport::{Stream, TlsError};
use wire::proxy_protocol::{self, Header, Origin};

/// The largest response head accepted over HTTP/2, in bytes as RFC 9113 section 6.5.2 counts them.
const HEAD_MAX_BYTES: u32 = 64 * 1024;

/// The TLS configurations of probes.
#[derive(Debug, Default)]
pub(crate) struct Configs(Kept<(Arc<ServiceTls>, HttpVersion), ClientConfig>);

impl Configs {
    /// Drops configurations that no probe uses any more.
    pub(crate) fn forget_unused(&mut self) {
        self.0.forget_unused();
    }

    fn get(&mut self, tls: &ProbeTls, http: HttpVersion) -> Result<Arc<ClientConfig>, Mistake> {
        self.0.get((Arc::clone(&tls.settings), http), |(settings, http)| {
            let config = tls::client(settings, tls::service_alpn(*http))?;
            let mut config = Arc::unwrap_or_clone(config);
            // In a resumed session a server sends no certificate, so it could expire unnoticed.
            config.resumption = Resumption::disabled();
            Ok(Arc::new(config))
        })
    }
}

/// How the connections of one probe are opened.
#[derive(Debug)]
pub(crate) struct Way {
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    preface: Vec<u8>,
    http: HttpVersion,
}

/// A connection that carries requests, and is reset when dropped, even in the middle of an
/// exchange.
#[derive(Debug)]
pub(crate) struct Line {
    /// Present until it is dropped.
    connection: Option<Connection>,
    /// The task that drives HTTP/2.
    driver: Option<AbortHandle>,
}

impl Way {
    /// Returns `None` if its TLS cannot be set up. A checked configuration has been built before,
    /// so that is a bug.
    pub(crate) fn of(probe: &ProbeIdentity, configs: &mut Configs) -> Option<Way> {
        let spec = &probe.spec;
        let tls = match &spec.tls {
            None => None,
            Some(tls) => {
                let config = configs.get(tls, spec.http);
                let config = config.inspect_err(|mistake| {
                    tracing::error!(?mistake, "cannot set up TLS for a health check");
                });
                Some((config.ok()?, server_name(tls, probe.address)))
            }
        };
        let mut preface = Vec::new();
        match spec.send_proxy {
            None => {}
            Some(ProxyVersion::V1) => proxy_protocol::write_v1(&mut preface, Origin::Unknown),
            Some(ProxyVersion::V2) => {
                let header = Header { origin: Origin::Local, ..Header::default() };
                proxy_protocol::write_v2(&mut preface, &header);
            }
        }
        Some(Way { tls, preface, http: spec.http })
    }

    /// Connects, and completes the TLS handshake if TLS is used.
    pub(crate) async fn connect(
        &self,
        address: Address,
        give_up: Duration,
    ) -> Result<Stream, Failure> {
        let tls = self.tls.clone();
        let options = DialOptions { connect_timeout: give_up, user_timeout: None, tls };
        dial_with(address, &options, &self.preface).await.map_err(|error| of_dial(&error))
    }

    /// Connects for requests. Must be called where local tasks can be spawned.
    pub(crate) async fn open(&self, address: Address, give_up: Duration) -> Result<Line, Failure> {
        let stream = self.connect(address, give_up).await?;
        if self.http == HttpVersion::Http11 {
            return Ok(Line { connection: Some(Connection::over(stream)), driver: None });
        }
        if stream.tls().is_some_and(|tls| tls.alpn.as_deref() != Some(b"h2")) {
            stream.reset();
            return Err(Failure::Said("the server does not agree to HTTP/2 (ALPN)"));
        }
        let started = Http2Client::start(stream, HEAD_MAX_BYTES).await;
        let (client, driver) = started.map_err(|error| {
            let violated = matches!(StreamError::of(&error), StreamError::Violation(_));
            let cause =
                if violated { Cause::HttpProtocolError } else { Cause::ConnectionTerminated };
            of_io(&error, cause)
        })?;
        let driver = tokio::task::spawn_local(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%address, %error, "a probe's HTTP/2 connection has ended");
            }
        });
        let connection = Some(Connection::over_http2(client));
        Ok(Line { connection, driver: Some(driver.abort_handle()) })
    }
}

impl Line {
    /// Returns the connection.
    pub(crate) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.reset();
        }
        if let Some(driver) = &self.driver {
            driver.abort();
        }
    }
}

/// Returns the server name for TLS; if a name is not valid in TLS, the address, as for requests.
fn server_name(tls: &ProbeTls, address: Address) -> ServerName<'static> {
    ServerName::try_from(tls.name.to_string()).unwrap_or_else(|_| dial::server_name(address))
}

fn of_dial(error: &DialError) -> Failure {
    of_io(&error.source, error.cause)
}

/// Returns the failure for a broken connection: TLS's description, otherwise this cause.
pub(crate) fn of_io(error: &std::io::Error, cause: Cause) -> Failure {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    inner.map_or(Failure::Broken(cause), |error| Failure::Said(error.text()))
}
