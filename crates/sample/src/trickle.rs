//! A small steady client: so many requests a second to one address, whatever comes back.
//!
//! Open loop: a slow answer does not slow the next request down, and latency counts from the
//! moment a request was due, so that waiting is never hidden. For a demo's traffic; not a
//! benchmark.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use model::Cause;
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use transport::client::{Connection, ExchangeLimits, Request};
use transport::dial::DialOptions;

/// What is sent, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct Trickle {
    /// Where to.
    pub address: SocketAddr,
    /// The Host field.
    pub host: String,
    /// Targets in origin form, sent in turn; empty: `/`.
    pub paths: Vec<String>,
    /// Further request fields.
    pub fields: Vec<(String, String)>,
    /// Requests per second, evenly spaced; from 0.001 to a million.
    pub per_second: f64,
    /// The longest that one request may take, connecting included.
    pub timeout: Duration,
    /// Requests at once; one that falls due beyond that is not sent, and counted as skipped.
    pub in_flight_max: usize,
    /// Bytes of a body that are read.
    pub body_max_bytes: usize,
}

impl Trickle {
    /// Ten requests a second for `/`, with bounds that suit a demo.
    pub fn new(address: SocketAddr) -> Trickle {
        Trickle {
            address,
            host: address.to_string(),
            paths: vec!["/".to_owned()],
            fields: Vec::new(),
            per_second: 10.0,
            timeout: Duration::from_secs(10),
            in_flight_max: 256,
            body_max_bytes: 1 << 20,
        }
    }
}

/// What happened in one second: requests are counted in the second in which they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Which second this was, from 1.
    pub second: u64,
    /// Requests begun.
    pub sent: u64,
    /// Requests that were due but not sent, since too many were under way.
    pub skipped: u64,
    /// Requests under way now.
    pub in_flight: usize,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without an answer, by the name of their cause.
    pub failures: BTreeMap<&'static str, u64>,
    /// Latency of the answers; `None` if there was none.
    pub latency: Option<Latency>,
    /// Connections opened.
    pub connections_opened: u64,
}

impl Summary {
    /// Requests that ended with an answer, whatever its status.
    pub fn answered(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Requests that ended without an answer.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }
}

/// From the moment a request was due to the last byte of its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// The shortest.
    pub min: Duration,
    /// Half are shorter.
    pub median: Duration,
    /// The longest.
    pub max: Duration,
}

/// Sends until the future is dropped; `each_second` is given what happened, once a second. Must be
/// called within a runtime.
pub async fn run(trickle: Trickle, mut each_second: impl FnMut(Summary)) {
    // In this order, so that what is not a number becomes the slowest rate.
    #[allow(clippy::manual_clamp, reason = "clamp passes NaN on")]
    let per_second = trickle.per_second.max(0.001).min(1e6);
    let mut due = interval(Duration::from_secs_f64(1.0 / per_second));
    // What was held up is sent at once, late, and shows as latency.
    due.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    seconds.tick().await;

    let client = Rc::new(Client { trickle, state: RefCell::default() });
    let sending = async {
        loop {
            tokio::select! {
                biased;
                _ = seconds.tick() => each_second(client.end_of_second()),
                at = due.tick() => {
                    let late = at.elapsed();
                    if let Some(path) = client.begin() {
                        let client = Rc::clone(&client);
                        tokio::task::spawn_local(async move { client.request(path, late).await });
                    }
                }
            }
        }
    };
    LocalSet::new().run_until(sending).await;
}

struct Client {
    trickle: Trickle,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    /// The second that is going on.
    summary: Summary,
    latencies: Vec<Duration>,
    /// Kept connections; the one used last is on top. Never more than were in flight at once.
    idle: Vec<Connection>,
    begun: u64,
}

impl Client {
    /// Counts a request that is due; yields which path it is for, unless too many are under way.
    fn begin(&self) -> Option<usize> {
        let mut state = self.state.borrow_mut();
        if state.summary.in_flight >= self.trickle.in_flight_max {
            state.summary.skipped += 1;
            return None;
        }
        state.summary.sent += 1;
        state.summary.in_flight += 1;
        let turn = state.begun;
        state.begun += 1;
        Some((turn % self.trickle.paths.len().max(1) as u64) as usize)
    }

    /// One request that was due `late` ago.
    async fn request(&self, path: usize, late: Duration) {
        let begun = os::clock::now();
        let ended = timeout(self.trickle.timeout, self.attempt(path)).await;
        let took = os::clock::now().since(begun) + late;
        let mut state = self.state.borrow_mut();
        state.summary.in_flight -= 1;
        match ended.unwrap_or(Err(Cause::HttpResponseTimeout)) {
            Ok(status) => {
                *state.summary.statuses.entry(status).or_default() += 1;
                state.latencies.push(took);
            }
            Err(cause) => *state.summary.failures.entry(cause.name()).or_default() += 1,
        }
    }

    /// Sends it, once more on a fresh connection if a kept one turns out to be closed.
    async fn attempt(&self, path: usize) -> Result<u16, Cause> {
        if let Some(mut kept) = self.kept() {
            match self.exchange(&mut kept, path).await {
                Err(Cause::ServerClosedIdleConnection) => {}
                result => return self.keep(kept, result),
            }
        }
        let options =
            DialOptions { connect_timeout: self.trickle.timeout, user_timeout: None, tls: None };
        let opened = Connection::open(self.trickle.address, &options).await;
        let mut fresh = opened.map_err(|error| error.cause)?;
        self.state.borrow_mut().summary.connections_opened += 1;
        let result = self.exchange(&mut fresh, path).await;
        self.keep(fresh, result)
    }

    async fn exchange(&self, connection: &mut Connection, path: usize) -> Result<u16, Cause> {
        let trickle = &self.trickle;
        let request = Request {
            method: "GET",
            path: trickle.paths.get(path).map_or("/", String::as_str),
            host: &trickle.host,
            fields: &trickle.fields,
            body: b"",
        };
        let limits =
            ExchangeLimits { timeout: trickle.timeout, body_max_bytes: trickle.body_max_bytes };
        let response = connection.exchange(&request, &limits).await;
        response.map(|response| response.status).map_err(|error| error.cause())
    }

    /// A kept connection that is still fit.
    fn kept(&self) -> Option<Connection> {
        let mut state = self.state.borrow_mut();
        while let Some(connection) = state.idle.pop() {
            if connection.reusable() {
                return Some(connection);
            }
        }
        None
    }

    fn keep<T>(&self, connection: Connection, result: T) -> T {
        if connection.reusable() {
            self.state.borrow_mut().idle.push(connection);
        }
        result
    }

    fn end_of_second(&self) -> Summary {
        let mut state = self.state.borrow_mut();
        let mut latencies = std::mem::take(&mut state.latencies);
        let next = Summary {
            second: state.summary.second + 1,
            in_flight: state.summary.in_flight,
            ..Summary::default()
        };
        let ended = std::mem::replace(&mut state.summary, next);
        latencies.sort_unstable();
        let latency = summarise(&latencies);
        latencies.clear();
        // Its room serves the next second.
        state.latencies = latencies;
        Summary { second: ended.second + 1, latency, ..ended }
    }
}

/// Of sorted latencies.
fn summarise(sorted: &[Duration]) -> Option<Latency> {
    Some(Latency {
        min: *sorted.first()?,
        median: sorted[(sorted.len() - 1) / 2],
        max: *sorted.last()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sample, SampleSpec, serve};

    /// Runs three clients for a second: against a quick server, a slow one, and none.
    #[tokio::test]
    async fn a_second_is_summed_up_whatever_comes_back() {
        let (quick, quick_address) = listen();
        let (slow, slow_address) = listen();
        let (closed, closed_address) = listen();
        drop(closed);
        let server = |work| Sample::new(SampleSpec { work, ..SampleSpec::default() });
        let first = |address, in_flight_max| async move {
            let trickle = Trickle { per_second: 100.0, in_flight_max, ..Trickle::new(address) };
            let (ended, mut summary) = tokio::sync::mpsc::channel(8);
            tokio::select! {
                () = run(trickle, move |s| drop(ended.try_send(s))) => unreachable!("it never ends"),
                summary = summary.recv() => summary.unwrap(),
            }
        };
        let seconds = async {
            tokio::join!(
                first(quick_address, 256),
                first(slow_address, 3),
                first(closed_address, 256)
            )
        };
        let (quick, slow, refused) = tokio::select! {
            seconds = seconds => seconds,
            _ = serve(quick, server(Duration::from_millis(1))) => unreachable!("it never ends"),
            _ = serve(slow, server(Duration::from_secs(60))) => unreachable!("it never ends"),
        };

        assert_eq!(quick.second, 1);
        // One at the beginning, then one every 10 ms; fewer on a machine that is held up.
        assert!((10..=102).contains(&quick.sent), "{quick:?}");
        assert_eq!(quick.statuses.keys().copied().collect::<Vec<_>>(), [200], "{quick:?}");
        assert_eq!(quick.sent, quick.answered() + quick.in_flight as u64, "{quick:?}");
        assert_eq!((quick.failed(), quick.skipped), (0, 0), "{quick:?}");
        assert!(quick.connections_opened < 50, "connections are kept: {quick:?}");
        let latency = quick.latency.unwrap();
        assert!(latency.min >= Duration::from_millis(1), "{latency:?}");
        assert!(latency.min <= latency.median && latency.median <= latency.max, "{latency:?}");

        assert_eq!((slow.sent, slow.in_flight, slow.answered()), (3, 3, 0), "{slow:?}");
        assert!(slow.skipped > 0, "an open loop goes on: {slow:?}");
        assert_eq!(slow.latency, None);

        assert_eq!(refused.failures.keys().copied().collect::<Vec<_>>(), ["connection_refused"]);
        assert!(refused.failed() > 10, "{refused:?}");
    }

    fn listen() -> (std::net::TcpListener, SocketAddr) {
        let bound = os::listen::bind("127.0.0.1:0".parse().unwrap(), None, false).unwrap();
        let address = bound.listener.local_addr().unwrap();
        (bound.listener, address)
    }

    #[test]
    fn the_median_of_few_is_one_of_them() {
        let ms = Duration::from_millis;
        assert_eq!(summarise(&[]), None);
        let one = summarise(&[ms(5)]).unwrap();
        assert_eq!((one.min, one.median, one.max), (ms(5), ms(5), ms(5)));
        assert_eq!(summarise(&[ms(1), ms(2), ms(9)]).unwrap().median, ms(2));
    }
}
