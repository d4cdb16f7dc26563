//! Pushes to graphite: carbon's plaintext protocol over a persistent connection. Undelivered metrics are
//! buffered up to a limit; every line has its own time, so late delivery loses nothing.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use model::HostPort;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Moment, Reached, Sample, resolve, within};

/// Maximum number of buffered bytes while the receiver is unreachable. The newest batch is buffered
/// whatever its size.
const WAITING_MAX_BYTES: usize = 1 << 20;

/// A graphite server.
#[derive(Debug)]
pub(super) struct Graphite {
    target: HostPort,
    stream: Option<TcpStream>,
    /// The lines of one interval each, oldest first.
    waiting: VecDeque<String>,
    waiting_bytes: usize,
    reached: Reached,
}

impl Graphite {
    pub(super) fn new(target: HostPort) -> Graphite {
        Graphite {
            target,
            stream: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            reached: Reached::default(),
        }
    }

    /// Sends the buffered batches and `batch`, as far as the time allows.
    pub(super) async fn push(&mut self, batch: String, allowed: Duration) {
        self.wait(batch);
        let sent = within(allowed, self.send()).await;
        if sent.is_err() {
            // A line may be cut: carbon discards incomplete lines, and receives all of it again.
            self.stream = None;
        }
        self.reached.note("graphite", &self.target, &sent);
    }

    fn wait(&mut self, batch: String) {
        self.waiting_bytes += batch.len();
        self.waiting.push_back(batch);
        let mut lost = 0;
        while self.waiting_bytes > WAITING_MAX_BYTES && self.waiting.len() > 1 {
            let oldest = self.waiting.pop_front().unwrap_or_default();
            self.waiting_bytes -= oldest.len();
            lost += 1;
        }
        if lost > 0 {
            tracing::warn!(target = %self.target, lost, "the buffer for Graphite is full; the oldest metrics are lost");
        }
    }

    async fn send(&mut self) -> io::Result<()> {
        let stream = match self.stream.take() {
            Some(stream) if is_open(&stream) => stream,
            _ => TcpStream::connect(resolve(&self.target).await?.as_slice()).await?,
        };
        let stream = self.stream.insert(stream);
        while let Some(batch) = self.waiting.front() {
            stream.write_all(batch.as_bytes()).await?;
            self.waiting_bytes -= batch.len();
            self.waiting.pop_front();
        }
        Ok(())
    }
}

/// Returns whether the receiver has not closed the connection, as far as the kernel knows. A first
/// write to a closed connection would be lost without an error.
fn is_open(stream: &TcpStream) -> bool {
    match stream.try_read(&mut [0; 64]) {
        Ok(read) => read > 0,
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

/// Formats samples as lines; `wall` is the time since 1970.
pub(super) fn encode(moment: &Moment<'_>, prefix: &str, wall: Duration) -> String {
    let mut lines = String::new();
    let at = wall.as_secs();
    moment.each(prefix, &mut |name, sample| {
        // Writing to a String cannot fail.
        let _ = match sample {
            Sample::Count(count) => writeln!(lines, "{name} {count} {at}"),
            Sample::Gauge(value) => writeln!(lines, "{name} {} {at}", number(value)),
        };
    });
    lines
}

/// Formats a number with at most three decimals.
pub(super) fn number(value: f64) -> String {
    let mut text = format!("{value:.3}");
    let length = text.trim_end_matches('0').trim_end_matches('.').len();
    text.truncate(length);
    text
}
