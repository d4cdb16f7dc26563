//! HTTP/1.1 for the fakes: one thread serves all connections, so that thousands of blocking queries need
//! no threads of their own.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::state::{Api, Fault, Query, Recorded, State};

/// Received and not yet used; a connection that sends more is closed.
const INPUT_BYTES_MAX: usize = 64 * 1024;
/// The default of Consul and Nomad and their maximum.
const WAIT_DEFAULT: Duration = Duration::from_mins(5);
const WAIT_MAX: Duration = Duration::from_mins(10);

/// What a connection waits for.
enum Stage {
    /// A request.
    Request,
    /// A change, or a moment.
    Held(Query),
    /// Its end.
    Hung,
}

struct Served {
    stream: TcpStream,
    number: u64,
    stage: Stage,
    input: Vec<u8>,
    output: Vec<u8>,
    is_closed: bool,
}

/// Serves all connections until the state says that it is stopped.
pub(super) fn serve<A: Api>(listener: &TcpListener, woken: &UnixStream, state: &Mutex<State<A>>) {
    listener.set_nonblocking(true).expect("a listener that does not block");
    woken.set_nonblocking(true).expect("a socket that does not block");
    let mut all: Vec<Served> = Vec::new();
    let mut disconnects = None;
    loop {
        let wake_at = {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            if *disconnects.get_or_insert(state.disconnects) != state.disconnects {
                disconnects = Some(state.disconnects);
                all.clear();
            }
            if state.is_stopped {
                all.clear();
            }
            let now = Instant::now();
            for one in &mut all {
                one.advance(&mut state, now);
            }
            all.retain(|one| !one.is_closed);
            state.open_connections = all.len();
            state.held = all.iter().filter(|one| matches!(one.stage, Stage::Held(_))).count();
            if state.is_stopped {
                return;
            }
            all.iter().filter_map(|one| one.wake_at(&state)).min()
        };
        let ready = wait(listener, woken, &all, wake_at);
        let mut woken = woken;
        while woken.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {}
        for (one, is_ready) in all.iter_mut().zip(ready) {
            if is_ready {
                one.read();
            }
        }
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok((stream, _)) = listener.accept() {
            all.push(Served::new(stream, state.accepted));
            state.accepted += 1;
        }
    }
}

/// Waits until something can be done or `until`; returns which connections can be read.
fn wait(
    listener: &TcpListener,
    woken: &UnixStream,
    all: &[Served],
    until: Option<Instant>,
) -> Vec<bool> {
    let mut watched = vec![PollFd::new(listener, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
    watched.extend(all.iter().map(|one| {
        let write = if one.output.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        PollFd::new(&one.stream, PollFlags::IN | write)
    }));
    // A moment later rather than sooner, so that it is over when the thread looks.
    let left = until
        .map(|until| until.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
    let left = left.map(|left| Timespec::try_from(left).expect("minutes at most"));
    // An interrupted wait is a short one.
    let _ = poll(&mut watched, left.as_ref());
    let can_be_read = |one: &PollFd<'_>| !(one.revents() - PollFlags::OUT).is_empty();
    watched[2..].iter().map(can_be_read).collect()
}

impl Served {
    fn new(stream: TcpStream, number: u64) -> Served {
        stream.set_nonblocking(true).expect("a socket that does not block");
        stream.set_nodelay(true).expect("TCP_NODELAY");
        let (input, output) = (Vec::new(), Vec::new());
        Served { stream, number, stage: Stage::Request, input, output, is_closed: false }
    }

    fn read(&mut self) {
        let mut piece = [0; 16 * 1024];
        match self.stream.read(&mut piece) {
            Ok(0) => self.is_closed = true,
            Ok(count) => self.input.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.is_closed = true,
        }
        self.is_closed |= self.input.len() > INPUT_BYTES_MAX;
    }

    /// Does what can be done now.
    fn advance<A: Api>(&mut self, state: &mut State<A>, now: Instant) {
        while !self.is_closed {
            self.stage = match std::mem::replace(&mut self.stage, Stage::Hung) {
                Stage::Request => {
                    let end = self.input.windows(4).position(|four| four == b"\r\n\r\n");
                    let Some(end) = end else {
                        self.stage = Stage::Request;
                        break;
                    };
                    let head = String::from_utf8_lossy(&self.input[..end + 4]).into_owned();
                    let length = field(&head, "content-length").and_then(|text| text.parse().ok());
                    let length: usize = length.unwrap_or(0);
                    if self.input.len() < end + 4 + length {
                        self.stage = Stage::Request;
                        break;
                    }
                    let body: Vec<u8> =
                        self.input.drain(..end + 4 + length).skip(end + 4).collect();
                    self.request(&head, &body, state, now)
                }
                Stage::Held(query) if query.ready_at(state) <= now => {
                    let (fields, body) = state.answer(&query);
                    self.say(200, &fields, &body);
                    Stage::Request
                }
                stage => {
                    self.stage = stage;
                    break;
                }
            };
        }
        self.write();
    }

    /// Records a request and does what the fault says, or holds it as a query.
    fn request<A: Api>(
        &mut self,
        head: &str,
        body: &[u8],
        state: &mut State<A>,
        now: Instant,
    ) -> Stage {
        let recorded = recorded::<A>(head, self.number, now);
        state.requests.push(recorded.clone());
        let mut not_before = now;
        match state.fault.clone() {
            None => {}
            Some(Fault::Slow(delay)) => not_before += delay,
            Some(Fault::Hang) => return Stage::Hung,
            Some(Fault::Close) => {
                self.is_closed = true;
                return Stage::Hung;
            }
            Some(Fault::Answer(status, body)) => {
                let service = recorded.path.strip_prefix(A::PREFIX).unwrap_or_default();
                let index = state.services.index_of(service).to_string();
                let fields =
                    if status == 200 { state.fields(&index, false) } else { String::new() };
                self.say(status, &fields, body.as_bytes());
                return Stage::Request;
            }
            Some(Fault::Huge(bytes)) => {
                let mut body = vec![b' '; bytes.saturating_sub(2)];
                body.extend(b"[]");
                self.say(200, &state.fields("2", false), &body);
                return Stage::Request;
            }
        }
        if head.starts_with("PUT ") {
            let (status, text) = A::put(&recorded.path, body, &mut state.services);
            self.say(status, "", text.as_bytes());
            return Stage::Request;
        }
        if let Some((status, text)) = A::get(&recorded.path, &state.services) {
            self.say(status, "", text.as_bytes());
            return Stage::Request;
        }
        match query::<A>(head, &recorded, state.resets, not_before) {
            Ok(query) => Stage::Held(query),
            Err((status, text)) => {
                self.say(status, "", text.as_bytes());
                Stage::Request
            }
        }
    }

    fn say(&mut self, status: u16, fields: &str, body: &[u8]) {
        let kind = if status == 200 { "application/json" } else { "text/plain; charset=utf-8" };
        let head = format!(
            "HTTP/1.1 {status} Some\r\nContent-Type: {kind}\r\n{fields}Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.output.extend_from_slice(head.as_bytes());
        self.output.extend_from_slice(body);
    }

    fn write(&mut self) {
        let mut sent = 0;
        while sent < self.output.len() {
            match self.stream.write(&self.output[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.is_closed = true;
                    break;
                }
            }
        }
        self.output.drain(..sent);
    }

    fn wake_at<A: Api>(&self, state: &State<A>) -> Option<Instant> {
        match &self.stage {
            Stage::Held(query) => Some(query.ready_at(state)),
            Stage::Request | Stage::Hung => None,
        }
    }
}

fn recorded<A: Api>(head: &str, connection: u64, at: Instant) -> Recorded {
    let target = head.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let token = field(head, &format!("x-{}-token", A::NAME));
    let token = token.or_else(|| field(head, "authorization")?.strip_prefix("Bearer "));
    let token = token.map(str::to_owned);
    let method = head.split(' ').next().unwrap_or_default().to_owned();
    Recorded { at, method, path: path.to_owned(), query: query.to_owned(), token, connection }
}

/// A field of a request's head.
fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// What a request asks, or status and text of its refusal, which are those of Consul and Nomad.
fn query<A: Api>(
    head: &str,
    recorded: &Recorded,
    resets: u64,
    not_before: Instant,
) -> Result<Query, (u16, &'static str)> {
    let is_list = A::LIST.is_some_and(|path| recorded.path == path);
    let service = if is_list { Some("") } else { recorded.path.strip_prefix(A::PREFIX) };
    let unknown = (404, "Invalid URL path: not a recognized HTTP API endpoint\n");
    let service = service.filter(|_| head.starts_with("GET ")).ok_or(unknown)?;
    if service.is_empty() && !is_list {
        return Err((400, "Missing service name"));
    }
    let index = recorded.parameter("index").map_or(Ok(0), str::parse);
    let index = index.map_err(|_| (400, "Invalid index"))?;
    let wait = recorded.parameter("wait").map_or(Some(WAIT_DEFAULT), duration);
    let wait = wait.ok_or((400, "Invalid wait time"))?;
    Ok(Query {
        service: service.to_owned(),
        passing: recorded.parameter("passing").is_some(),
        stale: recorded.parameter("stale").is_some(),
        index,
        until: recorded.at + wait.min(WAIT_MAX),
        not_before,
        resets,
    })
}

/// A duration as clients write it: a whole number with one unit.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let count: u64 = text[..digits].parse().ok()?;
    match &text[digits..] {
        "ms" => Some(Duration::from_millis(count)),
        "s" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_secs(count.checked_mul(60)?)),
        _ => None,
    }
}
