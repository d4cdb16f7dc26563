//! The results of one run: what `weir bench … --json FILE` writes, and what the page and the comparison
//! read.
//!
//! Names end in their unit; times of day are RFC 3339 in UTC. New fields have a default, so that older
//! files can still be read; a field whose meaning changes requires a new [`FORMAT`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::latency::Summary;

/// The version of the file's format.
pub const FORMAT: u32 = 1;

/// One run of load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Version of this format: [`FORMAT`].
    pub format: u32,
    /// What kind of run: `http`, `connect` or `limit`.
    pub kind: String,
    /// The version of Weir that made it.
    pub weir: String,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// When it began: `2026-11-22T01:24:05Z`.
    pub started_at: String,
    /// Where the load came from.
    pub host: Host,
    /// What was asked, in the order of the command line.
    pub targets: Vec<Target>,
    /// How the load was shaped.
    pub shape: Shape,
    /// Counts over the whole run.
    pub totals: Totals,
    /// Rates over the whole run.
    pub rate: Rate,
    /// Times over the whole run.
    pub latency: Latency,
    /// Second by second; the first begins with the run.
    pub seconds: Vec<Second>,
    /// The host that the load came from, second by second, beside `seconds`.
    pub host_seconds: Vec<HostSecond>,
    /// What ran out, and whose it is. Empty: nothing was seen to run out.
    pub ran_out: Vec<RanOut>,
    /// The thresholds that were asked for, and what came of them.
    pub expectations: Vec<Expectation>,
    /// The steps of a search for the limit, in order.
    pub steps: Vec<Step>,
    /// What a search for the limit came to; `None`: this was no search, or an older Weir wrote it.
    pub limit: Option<Limit>,
    /// Connections by source address, second by second (`weir bench connect`).
    pub sources: Vec<Source>,
    /// Why the load generator itself aborted the run; `None`: it was not. The figures are
    /// those until then.
    pub broken_off: Option<String>,
    /// What else a reader should know: a line each.
    pub notes: Vec<String>,
}

/// The machine that the load came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The kernel's release, such as `6.18.0`.
    pub kernel: String,
    /// Processors that this process may run on.
    pub cpus: u32,
    /// The processors' model, if it is known.
    pub cpu_model: String,
    /// The interface whose bytes and packets are in `host_seconds`; empty: none was chosen.
    pub interface: String,
}

/// What was asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Target {
    /// The URL, or HOST:PORT of a connect run. Without a password.
    pub url: String,
    /// The request's method; empty for a connect run.
    pub method: String,
    /// Its share of the requests, relative to the other targets' weights.
    pub weight: u32,
    /// The addresses that its name had, each with its port; the first is the one that was used.
    pub addresses: Vec<String>,
}

/// How the load was shaped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shape {
    /// `open`: requests start by the clock, whatever the server does. `closed`: each connection
    /// starts its next request when the last one is answered.
    pub model: String,
    /// `http/1.1` or `h2`; empty for a connect run.
    pub protocol: String,
    /// How long was asked for, in seconds; `None`: so many requests instead.
    pub duration_s: Option<f64>,
    /// How many requests were asked for; `None`: so long instead.
    pub requests: Option<u64>,
    /// Connections at most.
    pub connections_max: u64,
    /// Whether connections were kept for further requests.
    pub keep_alive: bool,
    /// Threads that made the load.
    pub threads: u32,
}

/// Counts over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Requests started: each ended with a response or an error, or was cut off by the end.
    pub requests: u64,
    /// Responses read to their last byte, whatever their status.
    pub responses: u64,
    /// Requests that got no whole response.
    pub errors: u64,
    /// The same by kind: `connection_refused`, `connect_timeout`, `response_timeout` and so on, by
    /// the names that `weir explain` knows, where it knows them.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Requests that were under way when the run ended; neither responses nor errors.
    pub cut_off: u64,
    /// How often a server gave a request back that it had not looked at (HTTP/2: GOAWAY,
    /// `REFUSED_STREAM`); each was sent again over another connection.
    pub given_back: u64,
    /// Responses by status, such as `"200"`.
    pub statuses: BTreeMap<String, u64>,
    /// Bytes read, heads and bodies, without TLS and what lies below.
    pub bytes_in: u64,
    /// Bytes of bodies read.
    pub body_bytes_in: u64,
    /// Bytes written, heads and bodies, without TLS and what lies below.
    pub bytes_out: u64,
    /// Connections opened.
    pub connections: u64,
    /// Starts that came later than intended by more than a millisecond (open model).
    pub late_starts: u64,
    /// Starts that did not come at all, since all connections were in use (open model).
    pub dropped_starts: u64,
    /// From the first start to the last response, s.
    pub duration_s: f64,
    /// CPU time of the load generator in user mode, s.
    pub cpu_user_s: f64,
    /// CPU time of the load generator in the kernel, s.
    pub cpu_system_s: f64,
}

/// Rates over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rate {
    /// Starts per second that were asked for, the mean over the run; `None` in the closed model.
    pub intended_per_s: Option<f64>,
    /// Requests started per second.
    pub achieved_per_s: f64,
    /// Responses per second.
    pub responses_per_s: f64,
}

/// Times over the whole run; each only of requests with a response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// From the intended start of the request to the last byte of its response:
    /// what a user waits, with the waiting that a stalled server causes before a request is sent.
    /// `None` in the closed model, which intends no moment.
    pub intended_start: Option<Summary>,
    /// From the moment at which the request did begin to the last byte of its response.
    pub service: Summary,
    /// How late starts were: from the intended moment to the real one. `None` in the closed model.
    pub lateness: Option<Summary>,
    /// How late an empty timer loop was woken meanwhile: what of `lateness` is this machine's.
    /// `None` in the closed model.
    pub timer_lateness: Option<Summary>,
    /// Its parts.
    pub phases: Phases,
}

/// The parts of a request's time. Only what happened is counted: a request on a kept connection has
/// no `connect`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Phases {
    /// Looking up the name.
    pub dns: Summary,
    /// From SYN to SYN+ACK.
    pub connect: Summary,
    /// The TLS handshake.
    pub tls: Summary,
    /// From the request's first byte sent to the response's first byte.
    pub first_byte: Summary,
    /// From the response's first byte to its last.
    pub transfer: Summary,
    /// All of it, from the request's beginning to the last byte.
    pub total: Summary,
    /// TCP's own estimate of the round trip, of a share of the requests.
    pub round_trip: Summary,
}

/// One second of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Second {
    /// The second's beginning, counted from the run's, s.
    pub at_s: f64,
    /// Starts that were intended in it; `None` in the closed model.
    pub intended: Option<u64>,
    /// Starts in it.
    pub started: u64,
    /// Responses that were complete in it.
    pub completed: u64,
    /// Requests that failed in it.
    pub errors: u64,
    /// Responses in it with a status of 400 or more.
    pub bad_statuses: u64,
    /// Starts in it that were late by more than a millisecond.
    pub late: u64,
    /// Starts that were due in it and did not come.
    pub dropped: u64,
    /// Bytes read in it.
    pub bytes_in: u64,
    /// Bytes written in it.
    pub bytes_out: u64,
    /// Connections open at its end.
    pub connections_open: u64,
    /// Connections opened in it.
    pub connections_opened: u64,
    /// Requests under way at its end.
    pub in_flight: u64,
    /// CPU time of the busiest thread of the load generator, percent of one processor.
    pub busiest_thread_percent: f64,
    /// Times from the intended start, of responses complete in it; `None` in the closed model.
    pub intended_start: Option<Percentiles>,
    /// Times from the real start, of responses complete in it.
    pub service: Option<Percentiles>,
    /// 99.9 % of the starts in it were at most this late, ms; `None`: there were none, or the model is
    /// closed.
    pub lateness_p99_9_ms: Option<f64>,
    /// The same of an empty timer loop's wake-ups, ms; `None`: it had none in that second, as after the
    /// last start, or the model is closed.
    pub timer_lateness_p99_9_ms: Option<f64>,
}

/// The times of one second, ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Percentiles {
    /// Arithmetic mean, ms.
    pub mean_ms: f64,
    /// Half took at most this long, ms.
    pub p50_ms: f64,
    /// 90 % took at most this long, ms.
    pub p90_ms: f64,
    /// 99 % took at most this long, ms.
    pub p99_ms: f64,
    /// 99.9 % took at most this long, ms.
    pub p99_9_ms: f64,
    /// The longest, ms.
    pub max_ms: f64,
}

/// The host that the load came from, over one second: differences of the kernel's counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSecond {
    /// The second's beginning, counted from the run's, s.
    pub at_s: f64,
    /// CPU time of all processors in user mode, percent of all processors (`/proc/stat`).
    pub cpu_user_percent: f64,
    /// CPU time in the kernel, interrupts included, percent of all processors.
    pub cpu_system_percent: f64,
    /// CPU time that the hypervisor gave to others, percent of all processors.
    pub cpu_steal_percent: f64,
    /// CPU time of the load generator itself, percent of one processor.
    pub own_cpu_percent: f64,
    /// Segments sent again (`Tcp: RetransSegs`).
    pub retransmissions: u64,
    /// SYNs and SYN+ACKs sent again (`TcpExt: TCPSynRetrans`).
    pub syn_retransmissions: u64,
    /// Connections lost to a full accept queue of this host (`TcpExt: ListenOverflows`).
    pub listen_overflows: u64,
    /// SYNs dropped by listeners of this host, for whatever reason (`TcpExt: ListenDrops`).
    pub listen_drops: u64,
    /// Bytes that the interface received.
    pub rx_bytes: u64,
    /// Bytes that the interface sent.
    pub tx_bytes: u64,
    /// Packets that the interface received.
    pub rx_packets: u64,
    /// Packets that the interface sent.
    pub tx_packets: u64,
}

/// Whose it is that ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// The load generator's, so that the figures are not the server's.
    Generator,
    /// The way's between the two.
    Link,
    /// The server's.
    Server,
    /// Nothing that was measured tells it.
    Unknown,
}

/// Something that ran out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RanOut {
    /// Whose it is.
    pub whose: Whose,
    /// What: `cpu`, `ports`, `descriptors`, `bandwidth`, `packets`, `concurrency`, `accept_queue`,
    /// `connections`, or `unknown`.
    pub what: String,
    /// What shows it, with figures: one line.
    pub evidence: String,
}

/// A threshold that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Expectation {
    /// As it was written: `p99<200ms`.
    pub text: String,
    /// What was measured, with its unit: `187 ms`.
    pub measured: String,
    /// Whether it was met.
    pub held: bool,
}

/// A step of a search for the limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// Starts per second that were asked for.
    pub rate_per_s: f64,
    /// Requests started per second.
    pub achieved_per_s: f64,
    /// How long it lasted, s.
    pub duration_s: f64,
    /// 99 % of times from the intended start were at most this long, ms.
    pub p99_ms: f64,
    /// Errors and statuses of 500 and more, percent of the requests.
    pub errors_percent: f64,
    /// Whether it was sustained.
    pub passed: bool,
    /// Why not, or what it was for: one line.
    pub why: String,
}

/// What a search for the limit came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limit {
    /// How the search ended.
    pub outcome: SearchEnd,
    /// The highest rate that was sustained: of the confirming runs, else of the trials; `None`: none was.
    pub sustained_per_s: Option<f64>,
    /// How long it was, s.
    pub sustained_s: f64,
    /// The lowest rate above it that was not sustained; `None`: none failed.
    pub failed_per_s: Option<f64>,
}

/// How a search for the limit ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// A run confirmed a rate, and a higher one failed.
    Found,
    /// Even the highest rate that was to be tried was sustained.
    NoLimit,
    /// Not even the lowest rate was sustained.
    Nothing,
    /// Trials passed, but no longer run did.
    Unconfirmed,
    /// It was ended before; or in a way that a later version of Weir wrote.
    #[default]
    #[serde(other)]
    Aborted,
}

/// Connections from one source address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    /// The address; empty when the kernel chose it.
    pub address: String,
    /// Connections made in each second of the run.
    pub connected: Vec<u64>,
    /// Connections that failed in each second of the run.
    pub failed: Vec<u64>,
}

/// A duration in seconds, as figures hold it.
pub fn seconds(time: std::time::Duration) -> f64 {
    time.as_secs_f64()
}

/// Why a file is not a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotARun(String);

impl std::fmt::Display for NotARun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotARun {}

impl Run {
    /// Reads what [`Run::to_json`] has written.
    ///
    /// # Errors
    /// When it is no JSON, no run, or one of a later version.
    pub fn from_json(text: &[u8]) -> Result<Run, NotARun> {
        let run: Run = serde_json::from_slice(text)
            .map_err(|error| NotARun(format!("not a file of `weir bench --json`: {error}")))?;
        match run.format {
            FORMAT => Ok(run),
            0 => Err(NotARun("not a file of `weir bench --json`: no `format`".to_owned())),
            newer => Err(NotARun(format!(
                "its format is {newer}, and this Weir reads {FORMAT}: use the Weir that wrote it"
            ))),
        }
    }

    /// As indented JSON.
    pub fn to_json(&self) -> String {
        // Maps of text to numbers and plain structs always have a JSON.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_as_it_was_written() {
        let run = Run {
            format: FORMAT,
            totals: Totals { requests: 7, ..Totals::default() },
            seconds: vec![Second { at_s: 0.0, intended: Some(7), ..Second::default() }],
            ran_out: vec![RanOut {
                whose: Whose::Generator,
                what: "ports".to_owned(),
                evidence: "EADDRNOTAVAIL 12 times".to_owned(),
            }],
            ..Run::default()
        };
        let text = run.to_json();
        assert!(text.contains("\"whose\": \"generator\""), "{text}");
        assert_eq!(Run::from_json(text.as_bytes()), Ok(run));
    }

    #[test]
    fn what_is_no_run_is_said_to_be_none() {
        for (text, wanted) in [
            ("", "not a file of `weir bench --json`: EOF while parsing"),
            ("[]", "not a file of `weir bench --json`: no `format`"),
            ("{}", "not a file of `weir bench --json`: no `format`"),
            ("{\"format\": \"x\"}", "not a file of `weir bench --json`: invalid type"),
            ("{\"format\": 99}", "its format is 99, and this Weir reads 1"),
        ] {
            let error = Run::from_json(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
