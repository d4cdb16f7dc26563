//! The sample server's connections: HTTP/1.1, one request after another.

use std::future::poll_fn;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::task::LocalSet;
use tokio::time::timeout;
use transport::body::{Body, BodyError};
use transport::{Inbox, Stream};
use wire::http1::{
    self, FIELDS_MAX, HeadLimits, Known, Parsed, RequestBody, RequestError, RequestHead, Version,
    encode,
};

use crate::pauses::Pauses;
use crate::sample::{Payload, Sample};
use crate::slots::Slot;
use crate::stats::push_json_string;

const HEAD_LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 64 * 1024, target_max_bytes: 16 * 1024, fields_max: FIELDS_MAX };

/// How long accepting pauses when descriptors have run out.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// Serves all connections of a non-blocking listener, on this thread, until the future is dropped;
/// that closes the listener and every connection. Must be called within a runtime; any number of
/// listeners may share one `sample`.
///
/// # Errors
/// When the listener itself breaks.
pub async fn serve(listener: TcpListener, sample: Arc<Sample>) -> io::Result<()> {
    let workers = sample.spec.workers().filter(|_| sample.spec.workers_accept);
    run(listener, sample, workers).await
}

/// As [`serve`], but every connection is accepted at once, also where workers accept for
/// themselves: for `/status` while all of them are busy.
///
/// # Errors
/// When the listener itself breaks.
pub async fn serve_beside(listener: TcpListener, sample: Arc<Sample>) -> io::Result<()> {
    run(listener, sample, None).await
}

async fn run(listener: TcpListener, sample: Arc<Sample>, workers: Option<usize>) -> io::Result<()> {
    let listener = Rc::new(tokio::net::TcpListener::from_std(listener)?);
    let pauses = Rc::new(Pauses::new()?);
    let tasks = LocalSet::new();
    let accepting = async {
        let Some(workers) = workers else {
            return accept_all(&listener, &sample, &pauses).await;
        };
        let mut working = tokio::task::JoinSet::new();
        for _ in 0..workers.max(1) {
            let (listener, sample) = (Rc::clone(&listener), Arc::clone(&sample));
            let pauses = Rc::clone(&pauses);
            working.spawn_local(async move { worker(&listener, &sample, &pauses).await });
        }
        // A worker ends only by an error, or by a panic.
        working.join_next().await.and_then(Result::ok).unwrap_or(Ok(()))
    };
    tasks
        .run_until(async {
            tokio::select! {
                ended = accepting => ended,
                broken = pauses.run() => broken,
            }
        })
        .await
}

/// Every connection gets a task of its own as soon as it comes.
async fn accept_all(
    listener: &tokio::net::TcpListener,
    sample: &Arc<Sample>,
    pauses: &Rc<Pauses>,
) -> io::Result<()> {
    loop {
        let stream = accept(listener).await?;
        let (sample, pauses) = (Arc::clone(sample), Rc::clone(pauses));
        tokio::task::spawn_local(async move {
            let _open = Open::new(&sample);
            // However it ends, the client has seen it.
            let _ = Connection::new(&stream, &sample, &pauses, None).run().await;
        });
    }
}

/// One worker of one thread: the next connection is accepted when the last one is closed.
async fn worker(
    listener: &tokio::net::TcpListener,
    sample: &Sample,
    pauses: &Pauses,
) -> io::Result<()> {
    loop {
        let stream = accept(listener).await?;
        let _open = Open::new(sample);
        let slot = sample.slots.begin().await;
        let _ = Connection::new(&stream, sample, pauses, Some(slot)).run().await;
    }
}

/// The next connection that is one.
async fn accept(listener: &tokio::net::TcpListener) -> io::Result<Stream> {
    loop {
        let (tcp, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) if os::accept::is_transient(&error) => continue,
            Err(error) if os::limits::is_exhaustion(&error) => {
                tokio::time::sleep(EXHAUSTED_PAUSE).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        if let Ok(stream) = tcp.into_std().and_then(|tcp| Stream::with_peer(tcp, peer)) {
            return Ok(stream);
        }
    }
}

/// Counts a connection as open until it is dropped.
struct Open<'a>(&'a Sample);

impl<'a> Open<'a> {
    fn new(sample: &'a Sample) -> Open<'a> {
        sample.counters.connections.fetch_add(1, Relaxed);
        sample.counters.connections_open.fetch_add(1, Relaxed);
        Open(sample)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.counters.connections_open.fetch_sub(1, Relaxed);
    }
}

/// One connection, with buffers that are kept from one request to the next.
struct Connection<'a> {
    stream: &'a Stream,
    sample: &'a Sample,
    pauses: &'a Pauses,
    /// The worker that serves nothing else meanwhile; `None`: one is waited for with each request.
    worker: Option<Slot<'a>>,
    /// Requests begun on it.
    requests: u64,
    inbox: Inbox,
    outbox: Vec<u8>,
    head: RequestHead,
}

/// An answer, but for its framing.
struct Answer<'a> {
    status: u16,
    content_type: &'static str,
    body: &'a [u8],
    keep_alive: bool,
}

impl<'a> Connection<'a> {
    fn new(
        stream: &'a Stream,
        sample: &'a Sample,
        pauses: &'a Pauses,
        worker: Option<Slot<'a>>,
    ) -> Connection<'a> {
        Connection {
            stream,
            sample,
            pauses,
            worker,
            requests: 0,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            head: RequestHead::default(),
        }
    }

    async fn run(mut self) -> io::Result<()> {
        self.stream.set_nodelay()?;
        loop {
            match self.read_head().await? {
                Some(Ok(())) => {}
                Some(Err(error)) => return self.refuse(error.status(), error.detail()).await,
                None => break,
            }
            if !self.one_request().await? {
                break;
            }
        }
        poll_fn(|cx| self.stream.poll_close_write(cx)).await
    }

    /// Reads the next request head; `None` when the client has closed instead.
    async fn read_head(&mut self) -> io::Result<Option<Result<(), RequestError>>> {
        loop {
            match http1::parse_request(self.inbox.unread(), &HEAD_LIMITS, &mut self.head) {
                Err(error) => return Ok(Some(Err(error))),
                Ok(Parsed::Complete { consumed }) => {
                    self.inbox.take(consumed);
                    return Ok(Some(Ok(())));
                }
                Ok(Parsed::Partial) => {}
            }
            match timeout(self.sample.spec.silence_max, self.inbox.fill(self.stream)).await {
                Err(_) | Ok(Ok(0)) => return Ok(None),
                Ok(result) => result?,
            };
        }
    }

    /// Does what the request in `head` asks; yields whether the connection goes on.
    async fn one_request(&mut self) -> io::Result<bool> {
        let sample = self.sample;
        self.requests += 1;
        let path = self.head.path();
        let is_work = !matches!(path, "/status" | "/stats" | "/fail");
        let present = is_work.then(|| sample.counters.enter());
        match self.discard_body().await {
            Ok(()) => {}
            Err(BodyError::Chunk(error)) => {
                self.refuse(error.status(), error.detail()).await?;
                return Ok(false);
            }
            Err(BodyError::Io(error)) => return Err(error),
            Err(BodyError::Ended) => return Ok(false),
        }
        match &present {
            Some(present) => self.work(present.number).await?,
            None => self.about_itself().await?,
        }
        // Right after the last byte went to the kernel, with no await between: no later request of
        // the reader of that byte can be counted together with this one.
        drop(present);
        Ok(self.keep_alive())
    }

    /// Whether another request may follow the one in `head`.
    fn keep_alive(&self) -> bool {
        let max = self.sample.spec.requests_per_connection_max.unwrap_or(u64::MAX);
        self.head.keep_alive() && self.requests < max
    }

    /// Reads the body to its end and counts its bytes.
    async fn discard_body(&mut self) -> Result<(), BodyError> {
        let framing = self.head.body();
        if framing == RequestBody::None {
            return Ok(());
        }
        if self.head.expects_continue() && self.inbox.unread().is_empty() {
            let mut stream = self.stream;
            let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
            stream.write_all(interim).await.map_err(BodyError::Io)?;
        }
        let mut body = Body::of_request(framing);
        while !body.is_done() {
            let count = |piece: &[u8]| {
                self.sample.counters.body_bytes.fetch_add(piece.len() as u64, Relaxed);
            };
            match timeout(
                self.sample.spec.silence_max,
                body.read(self.stream, &mut self.inbox, count),
            )
            .await
            {
                Err(_) => return Err(BodyError::Ended),
                Ok(result) => result?,
            }
        }
        Ok(())
    }

    /// The paths that are no work.
    async fn about_itself(&mut self) -> io::Result<()> {
        let sample = self.sample;
        match self.head.path() {
            "/fail" => self.fail().await,
            path => {
                let is_status = path == "/status";
                sample.counters.status_requests.fetch_add(u64::from(is_status), Relaxed);
                let status = if is_status { sample.status() } else { 200 };
                self.answer(status, "application/json", sample.status_json().as_bytes()).await
            }
        }
    }

    async fn work(&mut self, number: u64) -> io::Result<()> {
        let sample = self.sample;
        let slot = match &self.worker {
            Some(_) => None,
            None => Some(sample.slots.begin().await),
        };
        let work = sample.work.draw();
        if !work.is_zero() {
            self.pauses.wait(work).await;
        }
        drop(slot);
        match sample.spec.payload {
            Payload::Text { .. } => {
                self.answer(200, "text/plain; charset=utf-8", &sample.text).await
            }
            Payload::Json => {
                let text = self.json(number);
                self.answer(200, "application/json", text.as_bytes()).await
            }
        }
    }

    /// Request id (the client's, else a count), server and zone.
    fn json(&self, number: u64) -> String {
        let spec = &self.sample.spec;
        let mut text = String::from("{\"id\":");
        match self.head.known(Known::XRequestId) {
            Some(id) => push_json_string(&mut text, &String::from_utf8_lossy(id)),
            None => push_json_string(&mut text, &number.to_string()),
        }
        text.push_str(",\"server\":");
        push_json_string(&mut text, &spec.name);
        text.push_str(",\"zone\":");
        match &spec.zone {
            Some(zone) => push_json_string(&mut text, zone),
            None => text.push_str("null"),
        }
        text.push_str("}\n");
        text
    }

    /// `POST /fail?status=503`: what `/status` says from now on.
    async fn fail(&mut self) -> io::Result<()> {
        if self.head.method() != "POST" {
            return self.answer_text(405, "POST /fail?status=503\n").await;
        }
        let mut parameters = self.head.query().unwrap_or("").split('&');
        let status = parameters
            .find_map(|parameter| parameter.strip_prefix("status="))
            .and_then(|number| number.parse().ok())
            .filter(|status| (200..=599).contains(status));
        match status {
            Some(status) => {
                self.sample.set_status(status);
                self.answer_text(200, &format!("/status now answers {status}\n")).await
            }
            None => self.answer_text(400, "status must be a number from 200 to 599\n").await,
        }
    }

    async fn answer_text(&mut self, status: u16, text: &str) -> io::Result<()> {
        self.answer(status, "text/plain; charset=utf-8", text.as_bytes()).await
    }

    async fn answer(
        &mut self,
        status: u16,
        content_type: &'static str,
        body: &[u8],
    ) -> io::Result<()> {
        let is_head = self.head.is_head();
        let keep_alive = self.keep_alive();
        self.write(&Answer { status, content_type, body, keep_alive }, is_head).await
    }

    /// Answers what is no request, and closes.
    async fn refuse(&mut self, status: u16, why: &str) -> io::Result<()> {
        self.sample.counters.bad_requests.fetch_add(1, Relaxed);
        let body = format!("{why}\n");
        let content_type = "text/plain; charset=utf-8";
        let answer = Answer { status, content_type, body: body.as_bytes(), keep_alive: false };
        self.write(&answer, false).await?;
        poll_fn(|cx| self.stream.poll_close_write(cx)).await
    }

    async fn write(&mut self, answer: &Answer<'_>, is_head: bool) -> io::Result<()> {
        let out = &mut self.outbox;
        out.clear();
        encode::put_status_line(out, Version::Http11, answer.status, b"");
        out.extend_from_slice(b"Date: ");
        wire::date::put_imf_fixdate(out, os::clock::wall().as_secs());
        out.extend_from_slice(b"\r\n");
        encode::put_field(out, b"Content-Type", answer.content_type.as_bytes());
        // RFC 9110 section 8.6: no length in a response that has no body by its status.
        let has_body = !matches!(answer.status, 204 | 304);
        if has_body {
            encode::put_number_field(out, b"Content-Length", answer.body.len() as u64);
        }
        encode::put_field(out, b"X-Server", self.sample.spec.name.as_bytes());
        if !answer.keep_alive {
            encode::put_field(out, b"Connection", b"close");
        } else if self.head.version() == Version::Http10 {
            encode::put_field(out, b"Connection", b"keep-alive");
        }
        out.extend_from_slice(b"\r\n");
        if has_body && !is_head {
            out.extend_from_slice(answer.body);
        }
        let mut stream = self.stream;
        stream.write_all(out).await
    }
}
