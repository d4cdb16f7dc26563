//! Calls the webhooks and commands that start and stop servers, on a thread of its own.

use std::collections::HashMap;
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

/// Calls under way; another one counts as failed.
const CALLS_MAX: usize = 64;
/// Maximum time to resolve the name of a webhook, and to connect to one of its addresses.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Maximum size of a response or of what a command says; more is not kept.
const SAID_MAX_BYTES: usize = 16 * 1024;
/// How long after its end what a command has said may take to arrive. Another process may hold its standard error.
const LAST_WORDS_MAX: Duration = Duration::from_millis(100);

/// A result: the service, and why the call failed.
pub(super) type Called = (Arc<str>, Result<(), String>);

/// The thread, which ends when this is dropped. Commands that run go on.
pub(super) struct Calls {
    tasks: mpsc::Sender<Task>,
    results: Receiver<Called>,
}

struct Task {
    service: Arc<str>,
    action: Arc<ScalingAction>,
    message: Message,
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
            local.block_on(&runtime, run(received, called));
        })?;
        Ok(Calls { tasks, results })
    }

    /// Makes a call. A result follows if this returns true. One call of a service must end before the next.
    pub(super) fn make(
        &self,
        service: &Arc<str>,
        action: &Arc<ScalingAction>,
        message: Message,
    ) -> bool {
        let (service, action) = (Arc::clone(service), Arc::clone(action));
        self.tasks.try_send(Task { service, action, message }).is_ok()
    }

    /// Returns a result that has not been returned yet.
    pub(super) fn next_result(&self) -> Option<Called> {
        self.results.try_recv().ok()
    }
}

async fn run(mut tasks: mpsc::Receiver<Task>, called: SyncSender<Called>) {
    let mut running = tokio::task::JoinSet::new();
    while let Some(task) = tasks.recv().await {
        while running.try_join_next().is_some() {}
        let called = called.clone();
        running.spawn_local(async move {
            let Task { service, action, message } = task;
            let result = make(&action, &message).await;
            // The receiver is gone when the process ends.
            let _ = called.try_send((service, result.map_err(|error| error.to_string())));
        });
    }
}

async fn make(action: &ScalingAction, message: &Message) -> Result<(), Failed> {
    match &action.call {
        ScalingCall::Webhook(webhook) => post(webhook, message, action.timeout).await,
        ScalingCall::Command(command) => execute(command, message, action.timeout).await,
    }
}

async fn post(webhook: &ScalingWebhook, message: &Message, max: Duration) -> Result<(), Failed> {
    let ScalingWebhook { peer, fields, body } = webhook;
    let body = message.body(body.as_deref());
    let configured = fields.iter().map(|(name, value)| (name.clone(), value.to_string()));
    let mut sent: HashMap<String, (String, String)> = HashMap::new();
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
    let mut child = Command::new(program)
        .args(arguments.iter().map(|argument| message.argument(argument)))
        .envs(message.variables())
        // It must not speak to the service manager in Weir's name.
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // Its own group, so that all of it can be ended.
        .process_group(0)
        .spawn()
        .map_err(|error| Failed::Spawn(program.clone(), error))?;
    let group = child.id();
    let mut said = Vec::new();
    match timeout(max, wait(&mut child, &mut said)).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(Failed::Exit(status.to_string(), last_line(&said))),
        Ok(Err(error)) => Err(Failed::Spawn(program.clone(), error)),
        Err(_) => {
            if let Some(group) = group
                && let Err(error) = os::process::signal_group(group, Ask::Kill)
            {
                tracing::warn!(program, %error, "a scaling command that took too long cannot be ended");
            }
            // It was killed: this only takes it out of the table of processes.
            let _ = timeout(CONNECT_MAX, child.wait()).await;
            Err(Failed::TooLong(max, last_line(&said)))
        }
    }
}

/// Waits for the end of a command, and collects the beginning of what it says.
async fn wait(child: &mut Child, said: &mut Vec<u8>) -> io::Result<std::process::ExitStatus> {
    let Some(mut stderr) = child.stderr.take() else { return child.wait().await };
    let mut is_open = true;
    loop {
        tokio::select! {
            status = child.wait() => {
                let rest = async { while is_open && read(&mut stderr, said).await {} };
                // Without an end, what has arrived must do.
                let _ = timeout(LAST_WORDS_MAX, rest).await;
                return status;
            }
            read = read(&mut stderr, said), if is_open => is_open = read,
        }
    }
}

/// Reads some of what a command says. Returns false at the end.
async fn read(stderr: &mut ChildStderr, said: &mut Vec<u8>) -> bool {
    let mut some = [0; 4096];
    let length = stderr.read(&mut some).await.unwrap_or(0);
    let room = SAID_MAX_BYTES.saturating_sub(said.len());
    said.extend(some.iter().take(length.min(room)));
    length > 0
}

/// Returns the last line that says something.
fn last_line(said: &[u8]) -> String {
    const CHARS_MAX: usize = 200;
    let text = String::from_utf8_lossy(said);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("");
    line.chars().filter(|c| !c.is_control()).take(CHARS_MAX).collect()
}

/// Why a call failed. Prints as one line.
#[derive(Debug)]
enum Failed {
    Authorities(String),
    Connect(ConnectError),
    Exchange(ClientError),
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
