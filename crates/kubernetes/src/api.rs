//! Requests to the API server, over kube's client: it reads kubeconfig files, renews tokens and connects with TLS.
//! Answers are bounded, and every wait has an end.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use kube::client::Body;
use kube::config::{ExecInteractiveMode, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use model::Moment;
use os::clock::now;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::backoff::Recovery;
use crate::connecting::Connecting;
use crate::credentials::{Connected, Field};
use crate::failure::{Cause, Failure};
use crate::item::Change;
use crate::news::{News, Standing};

/// At most this many bytes of an answer. A page has at most [`PAGE_OBJECTS_MAX`] objects of at most 1.5 MB each.
const ANSWER_BYTES_MAX: usize = 512 << 20;
/// At most this many bytes of an event of a watch: etcd limits an object to 1.5 MB, and JSON escapes can double it.
const EVENT_BYTES_MAX: usize = 16 << 20;
/// How many objects a page of a list has at most.
pub(crate) const PAGE_OBJECTS_MAX: u32 = 250;
/// How long a request may take.
pub(crate) const REQUEST_MAX: Duration = Duration::from_secs(30);
/// How long a write may take: a leader that hears nothing stops before others take over.
pub(crate) const WRITE_MAX: Duration = Duration::from_secs(5);
/// The client is created again at most this often.
const RENEW_EVERY_MIN: Duration = Duration::from_secs(30);
/// Weir's name among the writers of an object.
pub(crate) const FIELD_MANAGER: &str = "weir";

/// The connection to the API server.
pub(crate) struct Api {
    kubeconfig: Option<PathBuf>,
    connecting: tokio::sync::Mutex<Connecting>,
    /// Whether the client is to be created again.
    is_outdated: Cell<bool>,
    renewed: Cell<Option<Moment>>,
    recovery: RefCell<Recovery>,
    /// The end of failures that are no outage, such as missing permissions.
    retry: RefCell<Recovery>,
    news: watch::Sender<News>,
}

impl Api {
    pub(crate) fn new(kubeconfig: Option<PathBuf>) -> Api {
        Api {
            kubeconfig,
            connecting: tokio::sync::Mutex::default(),
            is_outdated: Cell::new(false),
            renewed: Cell::new(None),
            recovery: RefCell::default(),
            retry: RefCell::default(),
            news: watch::channel(News::default()).0,
        }
    }

    /// Notes that no API server can be reached although connections to it exist.
    pub(crate) fn absent(&self) {
        self.recovery.borrow_mut().failed();
    }

    /// Returns what is known about the API server. What a request reads is of this generation or a later one.
    pub(crate) fn news(&self) -> News {
        *self.news.borrow()
    }

    /// Notes that the server's version is older than one that was known in the generation `known_at`.
    /// Returns whether that is news.
    pub(crate) fn older_data(&self, known_at: u64) -> bool {
        let is_news = self.news.send_if_modified(|news| news.older_data(known_at));
        if is_news {
            // Sources that wait after a failure are not listed in vain.
            self.retry.borrow_mut().failed();
            self.readable_again();
        }
        is_news
    }

    /// Notes that something can be read that could not. What prevented it may have prevented others, too.
    pub(crate) fn readable_again(&self) {
        if self.retry.borrow_mut().answered(now()) {
            self.news.send_modify(|news| news.retries += 1);
        }
    }

    /// Waits until what was read in this generation has to be checked or listed again.
    pub(crate) async fn outdated(&self, generation: u64) {
        self.heard(|news| news.standing(generation) != Standing::Current).await;
    }

    /// Waits for news. What is waited for locks the channel, so it is dropped here.
    async fn heard(&self, is_it: impl FnMut(&News) -> bool) {
        // The sender lives as long as `self`.
        let _ = self.news.subscribe().wait_for(is_it).await;
    }

    /// Waits after a failure, no longer than until an API server answers after an outage, or until what could not be read
    /// can be read again. Also if that has happened since the request, for which `asked` is [`News::retries`]. Returns
    /// whether the wait ended so: then earlier failures say little about the next attempt.
    pub(crate) async fn wait(&self, wait: Duration, failure: &Failure, asked: u64) -> bool {
        self.retry.borrow_mut().failed();
        let began = now();
        tokio::select! {
            () = sleep(wait) => false,
            () = self.heard(|news| news.retries > asked) => {
                const SPREAD_MS: u64 = 250;
                let spread = Duration::from_millis(fastrand::u64(0..SPREAD_MS));
                sleep(rest(wait, failure.retry_after, now().since(began), spread)).await;
                true
            }
        }
    }

    /// Sends a request and returns the answer as JSON.
    pub(crate) async fn json(
        &self,
        request: Request<Vec<u8>>,
        wait_max: Duration,
    ) -> Result<Value, Failure> {
        parse(&self.bytes(request, wait_max).await?.0)
    }

    /// Sends a request and returns the answer, and the generation of which it is.
    pub(crate) async fn bytes(
        &self,
        request: Request<Vec<u8>>,
        wait_max: Duration,
    ) -> Result<(Vec<u8>, u64), Failure> {
        let is_sent = Cell::new(false);
        let answer = async {
            let (response, generation) = self.send(request, &is_sent).await?;
            Ok((collect(response.into_body(), ANSWER_BYTES_MAX).await?, generation))
        };
        timeout(wait_max, answer).await.map_err(|_| late(&is_sent, wait_max))?
    }

    /// Sends a request and returns the lines of the answer as they arrive.
    pub(crate) async fn lines(&self, request: Request<Vec<u8>>) -> Result<Lines, Failure> {
        let is_sent = Cell::new(false);
        let answer = timeout(REQUEST_MAX, self.send(request, &is_sent)).await;
        let (response, _) = answer.map_err(|_| late(&is_sent, REQUEST_MAX))??;
        Ok(Lines { body: response.into_body(), buffered: Vec::new(), searched: 0 })
    }

    async fn send(
        &self,
        mut request: Request<Vec<u8>>,
        is_sent: &Cell<bool>,
    ) -> Result<(Response<Body>, u64), Failure> {
        let (client, credentials) = self.authorized().await?;
        is_sent.set(true);
        let (generation, failures) = (self.news().generation, self.recovery.borrow().failures());
        if let Some(credentials) = credentials {
            request.headers_mut().insert(AUTHORIZATION, credentials);
        }
        let response = client.send(request.map(Body::from)).await;
        let response = response.map_err(|error| {
            self.recovery.borrow_mut().failed();
            self.renew();
            Failure::of_error(&error)
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok((response, self.answered(generation, failures)));
        }
        // An API server that starts answers 403 and 503 until it has read its roles. That is no end of an outage, and 401
        // may be the beginning of one.
        const ERROR_BYTES_MAX: usize = 1 << 20;
        let retry_after = retry_after(&response);
        let body = collect(response.into_body(), ERROR_BYTES_MAX).await.unwrap_or_default();
        let mut failure = if let Ok(answer) = serde_json::from_slice(&body) {
            Failure::of_status(status.as_u16(), &answer)
        } else {
            let message = String::from_utf8_lossy(&body);
            Failure::of_status(status.as_u16(), &serde_json::json!({"message": message}))
        };
        failure.retry_after = failure.retry_after.or(retry_after);
        if failure.cause == Cause::Unauthorized {
            self.recovery.borrow_mut().failed();
            self.renew();
        }
        Err(failure)
    }

    /// Notes a success. Returns the generation of the answer to a request that was sent in this generation, after so many
    /// failures.
    fn answered(&self, generation: u64, failures: u64) -> u64 {
        let mut recovery = self.recovery.borrow_mut();
        if !recovery.answered(now()) {
            return generation;
        }
        self.news.send_modify(News::recovered);
        // The answer to a request that was sent before a failure may be of the time before the outage.
        if recovery.failures() == failures { self.news().generation } else { generation }
    }

    /// Returns the client, and the credentials of a request.
    async fn authorized(&self) -> Result<(Client, Field), Failure> {
        // Of many requests, one connects, and the others wait.
        let mut connecting = self.connecting.lock().await;
        // While a plugin runs, another one does not help.
        if !connecting.is_renewing() && self.is_outdated.take() {
            connecting.forget();
        }
        if !connecting.is_connected() {
            if connecting.is_idle() {
                let config = self.config().await?;
                let auth = &config.auth_info;
                let uses_plugin = auth.exec.is_some() || auth.auth_provider.is_some();
                connecting.begin(uses_plugin, move || Connected::new(config))?;
            }
            connecting.created().await?;
            self.renewed.set(Some(now()));
        }
        let authorized = connecting.authorized().await;
        if authorized.is_err() && !connecting.is_renewing() {
            self.renew();
        }
        authorized
    }

    /// Creates the client again with the next request: certificates, tokens and addresses in files may be others. kube
    /// itself reads a token in a file again every minute.
    fn renew(&self) {
        let is_recent = self.renewed.get().is_some_and(|at| now().since(at) < RENEW_EVERY_MIN);
        if !is_recent {
            self.is_outdated.set(true);
        }
    }

    async fn config(&self) -> Result<Config, Failure> {
        let mut config = match &self.kubeconfig {
            Some(path) => {
                let file =
                    Kubeconfig::read_from(path).map_err(|error| Failure::of_error(&error))?;
                let options = KubeConfigOptions::default();
                let config = Config::from_custom_kubeconfig(file, &options).await;
                config.map_err(|error| Failure::of_error(&error))?
            }
            None => Config::infer().await.map_err(|error| Failure::of_error(&error))?,
        };
        const CONNECT_MAX: Duration = Duration::from_secs(5);
        config.connect_timeout = Some(CONNECT_MAX);
        // Weir repeats requests itself, and less often.
        config.default_retry = false;
        if let Some(plugin) = &mut config.auth_info.exec {
            // Weir runs without a terminal.
            plugin.interactive_mode = Some(ExecInteractiveMode::Never);
        }
        Ok(config)
    }
}

/// Returns what is wrong if there is no answer in time.
fn late(is_sent: &Cell<bool>, wait_max: Duration) -> Failure {
    let what = if is_sent.get() { "answer" } else { "credentials for the API server" };
    Failure::new(Cause::Timeout, format!("no {what} within {} s", wait_max.as_secs()))
}

/// Returns how much longer a wait takes that can end after `elapsed`: not all attempts at once, and none before the server
/// wants it.
fn rest(wait: Duration, asked: Option<Duration>, elapsed: Duration, spread: Duration) -> Duration {
    let asked = asked.unwrap_or_default().saturating_sub(elapsed);
    spread.max(asked).min(wait.saturating_sub(elapsed))
}

/// Returns after how many seconds the server wants the next attempt. Proxies before the API server say so in a field.
fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let is_busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
    let field = response.headers().get(RETRY_AFTER)?;
    let seconds = field.to_str().ok()?.trim().parse().ok()?;
    is_busy.contains(&response.status()).then_some(Duration::from_secs(seconds))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::new(Cause::Unusable, format!("the answer is not JSON: {error}")))
}

/// Returns the next bytes of a body. `None`: it has ended.
async fn next(body: &mut Body) -> Option<Result<Bytes, Failure>> {
    loop {
        let frame =
            std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => return Some(Ok(data)),
            // Trailers.
            Ok(Err(_)) => {}
            Err(error) => return Some(Err(Failure::of_error(&error))),
        }
    }
}

async fn collect(mut body: Body, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let mut collected = Vec::new();
    while let Some(data) = next(&mut body).await {
        let data = data?;
        if collected.len() + data.len() > bytes_max {
            let line = format!("the answer has more than {bytes_max} bytes");
            return Err(Failure::new(Cause::Unusable, line));
        }
        collected.extend_from_slice(&data);
    }
    Ok(collected)
}

/// The lines of an answer.
pub(crate) struct Lines {
    body: Body,
    buffered: Vec<u8>,
    /// How many bytes of `buffered` have no line feed.
    searched: usize,
}

impl Lines {
    /// Returns the next line. `None`: the answer has ended. May be dropped while it waits.
    pub(crate) async fn next(&mut self) -> Option<Result<Change, Failure>> {
        loop {
            let line_feed = self.buffered[self.searched..].iter().position(|byte| *byte == b'\n');
            if let Some(place) = line_feed {
                let end = self.searched + place;
                let line = parse(&self.buffered[..end]);
                self.buffered.drain(..=end);
                self.searched = 0;
                return Some(line);
            }
            self.searched = self.buffered.len();
            if self.searched > EVENT_BYTES_MAX {
                let line = "an event of a watch is too long";
                return Some(Err(Failure::new(Cause::Unusable, line)));
            }
            // A line that is cut off is lost: the next watch begins before it.
            match next(&mut self.body).await? {
                Ok(data) => self.buffered.extend_from_slice(&data),
                Err(failure) => return Some(Err(failure)),
            }
        }
    }
}

/// A request without a body. Paths consist of names that the API server has checked.
pub(crate) fn get(path: &str) -> Result<Request<Vec<u8>>, Failure> {
    built(Request::get(path).body(Vec::new()))
}

/// A request with JSON.
pub(crate) fn with_json(
    method: http::Method,
    path: &str,
    content_type: &'static str,
    body: &Value,
) -> Result<Request<Vec<u8>>, Failure> {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(http::header::CONTENT_TYPE, content_type);
    built(request.body(body.to_string().into_bytes()))
}

/// A request that creates or updates an object: its fields become as they are in `body`, even if another program manages
/// them.
pub(crate) fn apply(path: &str, body: &Value) -> Result<Request<Vec<u8>>, Failure> {
    let path = format!("{path}?fieldManager={FIELD_MANAGER}&force=true");
    with_json(http::Method::PATCH, &path, "application/apply-patch+yaml", body)
}

/// Sends a request of a write, and returns the object afterwards.
pub(crate) async fn write(
    api: &Api,
    request: Result<Request<Vec<u8>>, Failure>,
) -> Result<Value, Failure> {
    api.json(request?, WRITE_MAX).await.map_err(Failure::of_write)
}

/// Checks a request that was built.
pub(crate) fn built(request: http::Result<Request<Vec<u8>>>) -> Result<Request<Vec<u8>>, Failure> {
    request
        .map_err(|error| Failure::new(Cause::Invalid, format!("the request is invalid: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_ends_early_ends_when_the_server_wants_it() {
        let seconds = Duration::from_secs;
        let spread = Duration::from_millis(100);
        for (wait, asked, elapsed, expected) in [
            (seconds(20), None, seconds(5), spread),
            (seconds(20), Some(seconds(8)), seconds(5), seconds(3)),
            (seconds(20), Some(seconds(8)), seconds(9), spread),
            // The wait is bounded, whatever the server asks for.
            (seconds(30), Some(seconds(900)), seconds(5), seconds(25)),
            (seconds(5), None, seconds(5), Duration::ZERO),
        ] {
            assert_eq!(rest(wait, asked, elapsed, spread), expected, "{asked:?} {elapsed:?}");
        }
    }
}
