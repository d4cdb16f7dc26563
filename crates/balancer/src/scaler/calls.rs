//! Calls the webhooks and commands that start and stop servers, on a thread of its own.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use model::{ScalingAction, ScalingCall, ScalingWebhook};
use os::process::Ask;
use tls::rustls::ClientConfig;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use transport::client::{ClientError, ConnectError, Connection, ExchangeLimits, Request};

use super::message::Message;

/// Maximum number of calls that have not ended; another one is refused.
const CALLS_MAX: usize = 64;
/// Maximum time to resolve the name of a webhook, and to connect to one of its addresses.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Maximum size of a response, or of a command's output; more is not kept.
const SAID_MAX_BYTES: usize = 16 * 1024;
/// How long the rest of a command's output may take after its end. Another process may hold its standard error.
const OUTPUT_MAX: Duration = Duration::from_millis(100);
/// Variables of the service manager that concern Weir alone.
const OWN_VARIABLES: [&str; 6] = [
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

/// A call that has ended: its service and number, and why it failed.
pub(super) type Called = (Arc<str>, u64, Result<(), String>);

/// The thread, which ends when this is dropped. Commands that run go on.
pub(super) struct Calls {
    tasks: mpsc::Sender<Task>,
    results: Receiver<Called>,
    called: SyncSender<Called>,
    /// The calls that have not ended.
    under_way: HashMap<Arc<str>, u64>,
    next: u64,
}

struct Task {
    action: Arc<ScalingAction>,
    message: Message,
    result: Reply,
}

/// Sends the result of a call, whatever becomes of its task.
struct Reply {
    service: Arc<str>,
    number: u64,
    to: SyncSender<Called>,
    result: Result<(), String>,
}

impl Drop for Reply {
    fn drop(&mut self) {
        let result = std::mem::replace(&mut self.result, Ok(()));
        // There is room for all calls under way. The receiver is gone when the process ends.
        let _ = self.to.try_send((Arc::clone(&self.service), self.number, result));
    }
}

impl Calls {
    /// # Errors
    /// The system grants no thread.
    pub(super) fn start() -> io::Result<Calls> {
        let (tasks, received) = mpsc::channel(CALLS_MAX);
        let (called, results) = sync_channel(CALLS_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Builder::new().name("weir-scaling".into()).spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, run(received));
        })?;
        Ok(Calls { tasks, results, called, under_way: HashMap::new(), next: 0 })
    }

    /// Makes a call. Returns its number; `None`: too many calls have not ended, or one of this service.
    pub(super) fn make(
        &mut self,
        service: &Arc<str>,
        action: &Arc<ScalingAction>,
        message: Message,
    ) -> Option<u64> {
        if self.under_way.len() >= CALLS_MAX || self.is_calling(service) {
            return None;
        }
        let number = self.next;
        let result = Reply {
            service: Arc::clone(service),
            number,
            to: self.called.clone(),
            result: Err("the call was not made".to_owned()),
        };
        self.tasks.try_send(Task { action: Arc::clone(action), message, result }).ok()?;
        self.next += 1;
        self.under_way.insert(Arc::clone(service), number);
        Some(number)
    }

    /// Returns whether a call of this service has not ended.
    pub(super) fn is_calling(&self, service: &str) -> bool {
        self.under_way.contains_key(service)
    }

    /// Returns a result that has not been returned yet.
    pub(super) fn next_result(&mut self) -> Option<Called> {
        loop {
            let (service, number, result) = self.results.try_recv().ok()?;
            // One that could not be handed to the thread was never under way.
            if self.under_way.get(&service) == Some(&number) {
                self.under_way.remove(&service);
                return Some((service, number, result));
            }
        }
    }
}

async fn run(mut tasks: mpsc::Receiver<Task>) {
    let mut running = tokio::task::JoinSet::new();
    while let Some(task) = tasks.recv().await {
        while running.try_join_next().is_some() {}
        running.spawn_local(async move {
            let Task { action, message, mut result } = task;
            result.result = Err("the call ended unexpectedly".to_owned());
            result.result = make(&action, &message).await.map_err(|error| error.to_string());
        });
    }
}

async fn make(action: &ScalingAction, message: &Message) -> Result<(), Failed> {
    match &action.call {
        ScalingCall::Webhook(webhook) => {
            let posted = timeout(action.timeout, post(webhook, message, action.timeout)).await;
            posted.unwrap_or(Err(Failed::NoAnswer(action.timeout)))
        }
        ScalingCall::Command(command) => execute(command, message, action.timeout).await,
    }
}

async fn post(webhook: &ScalingWebhook, message: &Message, max: Duration) -> Result<(), Failed> {
    let ScalingWebhook { peer, fields, body } = webhook;
    let body = message.body(body.as_deref());
    let configured = fields.iter().map(|(name, value)| (name.clone(), value.to_string()));
    // Configured fields replace those of Weir.
    let mut sent: BTreeMap<String, (String, String)> = BTreeMap::new();
    let own = [
        ("Content-Type", "application/json"),
        ("User-Agent", concat!("weir/", env!("CARGO_PKG_VERSION"))),
    ];
    for (name, value) in
        own.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().chain(configured)
    {
        sent.insert(name.to_ascii_lowercase(), (name, value));
    }
    let fields: Vec<(String, String)> = sent.into_values().collect();
    let request = Request {
        method: "POST",
        path: peer.url.target(),
        host: peer.url.authority(),
        fields: &fields,
        body: body.as_bytes(),
    };
    let tls: Option<Arc<ClientConfig>> = peer
        .ca
        .clone()
        .map(tls::own_client)
        .transpose()
        .map_err(|mistake| Failed::Authorities(mistake.to_string()))?;
    let limits = ExchangeLimits { timeout: max, body_max_bytes: SAID_MAX_BYTES };
    let mut connection = Connection::to(&peer.url, tls.as_ref(), CONNECT_MAX.min(max), max)
        .await
        .map_err(Failed::Connect)?;
    let response = connection.exchange(&request, &limits).await.map_err(Failed::Exchange)?;
    match response.status {
        200..300 => Ok(()),
        status => Err(Failed::Status(status, response.excerpt())),
    }
}

async fn execute(command: &[String], message: &Message, max: Duration) -> Result<(), Failed> {
    let Some((program, arguments)) = command.split_first() else { return Err(Failed::Empty) };
    let mut asked = Command::new(program);
    for name in OWN_VARIABLES {
        asked.env_remove(name);
    }
    let mut child = asked
        .args(arguments.iter().map(|argument| message.argument(argument)))
        .envs(message.variables())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // Its own group, so that all of it can be ended.
        .process_group(0)
        .spawn()
        .map_err(|error| Failed::Spawn(program.clone(), error))?;
    let mut output = Output { stderr: child.stderr.take(), read: Vec::new() };
    let ended = timeout(max, output.wait(&mut child)).await;
    // It has an ID until it was waited for.
    if let (Err(_), Some(group)) = (&ended, child.id()) {
        if let Err(error) = os::process::signal_group(group, Ask::Kill) {
            tracing::warn!(program, %error, "a scaling command that took too long cannot be ended");
        }
        // It was killed: this only takes it out of the table of processes.
        let _ = timeout(CONNECT_MAX, child.wait()).await;
    }
    // If it does not end, what has arrived is used.
    let _ = timeout(OUTPUT_MAX, async { while output.read_some().await {} }).await;
    match ended {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(Failed::Exit(status.to_string(), output.last_line())),
        Ok(Err(error)) => Err(Failed::Spawn(program.clone(), error)),
        Err(_) => Err(Failed::TooLong(max, output.last_line())),
    }
}

/// What a command writes to standard error.
struct Output {
    /// `None` after its end.
    stderr: Option<ChildStderr>,
    /// The beginning.
    read: Vec<u8>,
}

impl Output {
    /// Waits for the end of the command, and reads meanwhile.
    async fn wait(&mut self, child: &mut Child) -> io::Result<std::process::ExitStatus> {
        loop {
            let is_open = self.stderr.is_some();
            tokio::select! {
                status = child.wait() => return status,
                _ = self.read_some(), if is_open => {}
            }
        }
    }

    /// Reads some. Returns false at the end.
    async fn read_some(&mut self) -> bool {
        let Some(stderr) = &mut self.stderr else { return false };
        let mut some = [0; 4096];
        let length = stderr.read(&mut some).await.unwrap_or(0);
        let room = SAID_MAX_BYTES.saturating_sub(self.read.len());
        self.read.extend(some.iter().take(length.min(room)));
        if length == 0 {
            self.stderr = None;
        }
        length > 0
    }

    /// Returns the last line that is not empty.
    fn last_line(&self) -> String {
        const CHARS_MAX: usize = 200;
        let text = String::from_utf8_lossy(&self.read);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("");
        line.chars().filter(|c| !c.is_control()).take(CHARS_MAX).collect()
    }
}

/// Why a call failed. Prints as one line.
#[derive(Debug)]
enum Failed {
    Authorities(String),
    Connect(ConnectError),
    Exchange(ClientError),
    NoAnswer(Duration),
    Status(u16, String),
    Empty,
    Spawn(String, io::Error),
    Exit(String, String),
    TooLong(Duration, String),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = match self {
            Failed::Authorities(error) => {
                return write!(f, "the webhook's authorities cannot be used: {error}");
            }
            Failed::Connect(error) => return error.fmt(f),
            Failed::Exchange(error) => return error.fmt(f),
            Failed::NoAnswer(max) => {
                return write!(f, "the webhook did not answer within {} s", max.as_secs());
            }
            Failed::Empty => return f.write_str("the command names no program"),
            Failed::Spawn(program, error) => return write!(f, "{program} cannot be run: {error}"),
            Failed::Status(status, said) => {
                write!(f, "the webhook answered with status {status}")?;
                said
            }
            Failed::Exit(status, said) => {
                write!(f, "the command failed ({status})")?;
                said
            }
            Failed::TooLong(max, said) => {
                write!(f, "the command took longer than {} s", max.as_secs())?;
                said
            }
        };
        if said.is_empty() { Ok(()) } else { write!(f, ": {said}") }
    }
}
