//! One probe's way to its server: the connection kept between runs, and when a new one is made.
//!
//! A kept connection spares both sides a handshake a time, but a server that accepts nothing any
//! more may still answer on it; hence every tenth probe opens a new one, and after a connection
//! could not be made none is kept until a probe succeeds. Every connection is closed with a reset,
//! which leaves `TIME_WAIT` on neither side; all that was sent has been answered by then.

use std::net::SocketAddr;
use std::time::Duration;

use health::verdict::Failure;
use model::{Cause, CheckKind, ProbeIdentity};
use transport::client::{ClientError, Connection, ExchangeLimits, Request};
use transport::dial::{DialOptions, dial};

/// Probes on one connection.
const PROBES_PER_CONNECTION_MAX: u64 = 10;

/// Bytes of a probe's response body that are read.
const BODY_MAX_BYTES: usize = 64 * 1024;

/// The connection kept for a probe and what was learnt of it.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    kept: Option<Line>,
    /// The last new connection could not be made; nothing is kept until a probe succeeds.
    fresh_only: bool,
}

impl Lane {
    /// Runs the probe once. `give_up` lies beyond any timeout of its consumers: who waits for the
    /// result decides what is too late, and drops this future then.
    pub(crate) async fn run(
        &mut self,
        probe: &ProbeIdentity,
        give_up: Duration,
    ) -> Result<(), Failure> {
        let options = DialOptions { connect_timeout: give_up, user_timeout: None };
        match &probe.kind {
            CheckKind::Tcp => match dial(probe.address, &options).await {
                Ok(stream) => {
                    stream.reset();
                    Ok(())
                }
                Err(error) => Err(Failure::Broken(error.cause)),
            },
            CheckKind::Http { method, path, host, fields, expect, reuse } => {
                let http = Http {
                    address: probe.address,
                    options,
                    limits: ExchangeLimits { timeout: give_up, body_max_bytes: BODY_MAX_BYTES },
                    request: Request {
                        method,
                        path,
                        host: host.as_deref().unwrap_or_default(),
                        fields: &with_defaults(fields, *reuse),
                        body: &[],
                    },
                    reuse: *reuse,
                };
                if self.fresh_only {
                    self.kept = None;
                }
                let status = self.http(&http).await.map_err(Failure::Broken)?;
                if !expect.contains(status) {
                    return Err(Failure::Status(status));
                }
                self.fresh_only = false;
                Ok(())
            }
        }
    }

    /// The status that came back. What is kept for the next probe is put into `self.kept`.
    async fn http(&mut self, http: &Http<'_>) -> Result<u16, Cause> {
        if let Some(line) = self.kept.take()
            && line.is_fit()
        {
            // The server may close a kept connection whenever it likes: that says nothing of its
            // health, a new connection does.
            match self.exchange(line, http).await {
                Err(ClientError::Closed { .. }) => {}
                result => return result.map_err(|error| error.cause()),
            }
        }
        match Connection::open(http.address, &http.options).await {
            Ok(connection) => {
                let line = Line(Some(connection));
                self.exchange(line, http).await.map_err(|error| error.cause())
            }
            Err(error) => {
                self.fresh_only = true;
                Err(error.cause)
            }
        }
    }

    async fn exchange(&mut self, mut line: Line, http: &Http<'_>) -> Result<u16, ClientError> {
        let status = line.exchange(http).await?;
        if http.reuse {
            self.kept = Some(line);
        }
        Ok(status)
    }
}

/// What one HTTP probe needs.
struct Http<'a> {
    address: SocketAddr,
    options: DialOptions,
    limits: ExchangeLimits,
    request: Request<'a>,
    reuse: bool,
}

/// A connection that is reset however it is dropped, also in the middle of an exchange. Holds one
/// until then.
#[derive(Debug)]
struct Line(Option<Connection>);

impl Line {
    fn is_fit(&self) -> bool {
        self.0.as_ref().is_some_and(|connection| {
            connection.reusable() && connection.exchanges() < PROBES_PER_CONNECTION_MAX
        })
    }

    async fn exchange(&mut self, http: &Http<'_>) -> Result<u16, ClientError> {
        let Some(connection) = &mut self.0 else {
            return Err(ClientError::Closed { kept: false, source: None });
        };
        Ok(connection.exchange(&http.request, &http.limits).await?.status)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.reset();
        }
    }
}

/// The configured fields; a User-Agent that names us unless one is given, so that a server's own
/// log tells probes from people; and a word to the server when the connection ends here.
fn with_defaults(fields: &[(String, String)], reuse: bool) -> Vec<(String, String)> {
    let given = |name: &str| fields.iter().any(|(field, _)| field.eq_ignore_ascii_case(name));
    let mut all = fields.to_vec();
    if !given("user-agent") {
        all.push(("User-Agent".into(), concat!("weir/", env!("CARGO_PKG_VERSION")).into()));
    }
    if !reuse && !given("connection") {
        all.push(("Connection".into(), "close".into()));
    }
    all
}
