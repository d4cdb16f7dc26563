//! A probe's connection to its server: how it is kept between runs, and when a new one is opened.
//!
//! A kept connection saves both sides a handshake each time, but a server that accepts no new
//! connections may still answer on it; hence every tenth probe opens a new one, and after a failed
//! connect none is kept until a probe succeeds. Every connection is closed with a reset, which
//! leaves `TIME_WAIT` on neither side; everything sent has been answered by then.

use std::time::Duration;

use health::verdict::Failure;
use model::{Cause, CheckKind, ProbeIdentity};
use transport::client::{ClientError, ExchangeLimits, Request, Response};
use wire::grpc as messages;

use super::way::{Configs, Line, Way, of_io};
use super::{body, grpc};

/// Maximum number of probes on one connection.
const PROBES_PER_CONNECTION_MAX: u64 = 10;

/// Bytes of a probe's response body that are read.
const BODY_MAX_BYTES: usize = 64 * 1024;

/// The connection kept for a probe, and its state.
#[derive(Debug)]
pub(crate) struct Lane {
    /// `None`: the probe cannot be run, because of a problem on this machine.
    way: Option<Way>,
    kept: Option<Line>,
    /// The last connect failed; nothing is kept until a probe succeeds.
    fresh_only: bool,
}

/// The request of one probe.
struct Asked<'a> {
    probe: &'a ProbeIdentity,
    limits: ExchangeLimits,
    request: Request<'a>,
}

impl Lane {
    /// Returns a lane for `probe` alone.
    pub(crate) fn new(probe: &ProbeIdentity, configs: &mut Configs) -> Lane {
        Lane { way: Way::of(probe, configs), kept: None, fresh_only: false }
    }

    /// Runs the probe once. `give_up` lies beyond any timeout of its consumers: the caller decides
    /// what is too late, and drops this future then.
    pub(crate) async fn run(
        &mut self,
        probe: &ProbeIdentity,
        give_up: Duration,
    ) -> Result<(), Failure> {
        let limits = ExchangeLimits { timeout: give_up, body_max_bytes: BODY_MAX_BYTES };
        match &probe.spec.kind {
            CheckKind::Tcp => {
                let stream = self.way()?.connect(probe.address, give_up).await?;
                stream.reset();
                Ok(())
            }
            CheckKind::Http { method, path, host, fields, expect, body, reuse } => {
                let fields =
                    fields.iter().map(|(name, value)| (name.clone(), (**value).to_owned()));
                let fields = &with_defaults(fields.collect(), *reuse);
                let host = host.as_deref().unwrap_or_default();
                let request = Request { method, path, host, fields, body: &[] };
                self.ask(&Asked { probe, limits, request }, *reuse, |response, _| {
                    let status = response.status;
                    if !expect.contains(status) {
                        return Err(Failure::Status(status));
                    }
                    body::judge(body, &response.body, response.truncated).map_err(Failure::Said)
                })
                .await
            }
            CheckKind::Grpc { service, host } => {
                let fields = &with_defaults(grpc::fields(), true);
                let mut body = Vec::new();
                messages::put_check_request(&mut body, service);
                let request = grpc::request(host.as_deref().unwrap_or_default(), fields, &body);
                self.ask(&Asked { probe, limits, request }, true, grpc::judge).await
            }
        }
    }

    fn way(&self) -> Result<&Way, Failure> {
        self.way.as_ref().ok_or(Failure::Broken(Cause::ProxyInternalError))
    }

    /// Sends the request, and evaluates the answer. The connection is kept if `reuse`.
    async fn ask(
        &mut self,
        asked: &Asked<'_>,
        reuse: bool,
        judge: impl Fn(&Response, &transport::client::Connection) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.fresh_only {
            self.kept = None;
        }
        let (mut line, response) = self.answer(asked).await?;
        let judged = line.connection().map_or(Ok(()), |connection| judge(&response, connection));
        if reuse {
            self.kept = Some(line);
        }
        if judged.is_ok() {
            self.fresh_only = false;
        }
        judged
    }

    /// Returns the response and the connection that it came over.
    async fn answer(&mut self, asked: &Asked<'_>) -> Result<(Line, Response), Failure> {
        if let Some(mut line) = self.kept.take()
            && is_fit(&mut line)
        {
            // The server may close a kept connection at any time: that says nothing about its
            // health; a new connection does.
            match exchange(&mut line, asked).await {
                Err(ClientError::Closed { .. }) => {}
                result => return result.map(|response| (line, response)).map_err(of_client),
            }
        }
        let opened = self.way()?.open(asked.probe.address, asked.limits.timeout).await;
        let mut line = opened.inspect_err(|_| self.fresh_only = true)?;
        let response = exchange(&mut line, asked).await.map_err(of_client)?;
        Ok((line, response))
    }
}

fn is_fit(line: &mut Line) -> bool {
    line.connection().is_some_and(|connection| {
        connection.reusable() && connection.exchanges() < PROBES_PER_CONNECTION_MAX
    })
}

async fn exchange(line: &mut Line, asked: &Asked<'_>) -> Result<Response, ClientError> {
    match line.connection() {
        Some(connection) => connection.exchange(&asked.request, &asked.limits).await,
        // It exists until the line is dropped.
        None => Err(ClientError::Closed { kept: false, source: None }),
    }
}

fn of_client(error: ClientError) -> Failure {
    let cause = error.cause();
    error.io().map_or(Failure::Broken(cause), |error| of_io(error, cause))
}

/// Returns these fields, plus a User-Agent that names Weir unless one is given, so that a server's
/// log shows probes as such, and `Connection: close` if the connection ends here.
fn with_defaults(mut fields: Vec<(String, String)>, reuse: bool) -> Vec<(String, String)> {
    let given = |fields: &[(String, String)], name: &str| {
        fields.iter().any(|(field, _)| field.eq_ignore_ascii_case(name))
    };
    if !given(&fields, "user-agent") {
        fields.push(("User-Agent".into(), concat!("weir/", env!("CARGO_PKG_VERSION")).into()));
    }
    if !reuse && !given(&fields, "connection") {
        fields.push(("Connection".into(), "close".into()));
    }
    fields
}
