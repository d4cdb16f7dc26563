//! The old process's side of an upgrade.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, PipeReader, Read};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::process::{Child, ExitStatus};
use std::thread::JoinHandle;
use std::time::Duration;

use admin::ReloadError;
use admin_api::handover::{self, FORM, Manifest, Message};
use admin_api::receipt::{HandedOver, Process, Upgrade, UpgradeResult};
use model::{AffinityKey, Moment};
use os::process::Ask;
use os::unix_socket::SocketFile;

use super::predecessor::VARIABLE;
use super::program::Program;
use crate::commands::{CommandSender, Reply};
use crate::instance::Balancer;
use crate::maintenance;
use crate::server_states::ServerStates;
use crate::service_manager;
use crate::sockets::Sockets;

/// Maximum time until a new process serves; it resolves names first.
const READY_MAX: Duration = Duration::from_secs(30);

/// Maximum length of a new process's message, in bytes.
const MESSAGE_MAX_BYTES: u64 = 256 * 1024;

/// Time beyond `drain_max` after which a new process that failed is killed.
const END_MARGIN: Duration = Duration::from_secs(10);

/// Interval at which its exit is polled.
const END_LOOK: Duration = Duration::from_millis(50);

/// A new process that is not ready yet.
pub(crate) struct Successor {
    process: Child,
    /// The pipe on which it reports. It ends when this process has left, or with the new process: until then, the
    /// new process does not register in Consul, for instance.
    channel: PipeReader,
    /// Maximum time to exit after it has failed.
    end_max: Duration,
    switches: admin::Switches,
    began: Moment,
    handed: HandedOver,
    reply: Option<Reply<Upgrade>>,
}

/// Starts a new process, or returns why it cannot: for instance because one is starting already.
pub(crate) fn begin(
    successor: &mut Option<Successor>,
    balancer: &Balancer,
    commands: &CommandSender,
    program: &Program,
    reply: Option<Reply<Upgrade>>,
) {
    let started = if successor.is_some() {
        Err("an upgrade is already in progress".to_owned())
    } else if std::process::id() == 1 {
        Err("this process is number 1: when it ends, so does its whole container; start a new \
             container in its place"
            .to_owned())
    } else if balancer.gateways().is_some() {
        Err("Weir serves Gateways of Kubernetes, which a new process knows only some time after its \
             start; start another instance, and then stop this one"
            .to_owned())
    } else {
        // Before the servers' state is collected: the new process would not learn of later changes.
        balancer.switches().hold();
        start(balancer, commands, program).inspect_err(|_| balancer.switches().release())
    };
    match started {
        Ok((process, channel, handed)) => {
            tracing::info!(pid = process.id(), %program, "upgrade: a new process is starting");
            *successor = Some(Successor {
                process,
                channel,
                end_max: end_max(balancer),
                switches: balancer.switches().clone(),
                began: os::clock::now(),
                handed,
                reply,
            });
        }
        Err(why) => fail(reply, &why),
    }
}

/// Returns the descriptors of sockets that are handed over.
fn all(sockets: &Sockets) -> Vec<BorrowedFd<'_>> {
    let groups = sockets.groups().iter().flat_map(|group| &*group.sockets);
    let mut descriptors: Vec<BorrowedFd<'_>> = groups.map(TcpListener::as_fd).collect();
    descriptors.extend(sockets.admin().map(|(_, socket)| socket.as_fd()));
    descriptors.extend(sockets.metrics().map(|(_, socket)| socket.as_fd()));
    descriptors.extend(sockets.keda().map(|(_, socket)| socket.as_fd()));
    descriptors.extend(sockets.fleet().map(|(_, socket)| socket.as_fd()));
    descriptors
}

/// Starts the program with everything that it takes over.
fn start(
    balancer: &Balancer,
    commands: &CommandSender,
    program: &Program,
) -> Result<(Child, PipeReader, HandedOver), String> {
    let cannot = |what: &str, error: &dyn Display| format!("cannot {what}: {error}");
    let (hears, says) = io::pipe().map_err(|error| cannot("make a pipe", &error))?;
    let channel = hears.try_clone().map_err(|error| cannot("copy a pipe", &error))?;
    let sockets = balancer.sockets();
    balancer.save_servers();
    let states = ServerStates::of(&balancer.published(), os::clock::now());
    // An upgrade without history is better than none.
    let history = os::handover::memory_file("weir-history", &balancer.history())
        .inspect_err(|error| tracing::warn!(%error, "the history of traffic is not handed over"))
        .ok();
    let manifest = Manifest {
        form: FORM,
        says: says.as_raw_fd(),
        listeners: listeners(sockets),
        admin: sockets.admin().map(|(address, socket)| handover::Admin {
            address: address.to_string(),
            socket: socket.as_raw_fd(),
        }),
        metrics: sockets.metrics().map(|(address, socket)| handover::Metrics {
            address: *address,
            socket: socket.as_raw_fd(),
        }),
        keda: sockets.keda().map(|(address, socket)| handover::Metrics {
            address: *address,
            socket: socket.as_raw_fd(),
        }),
        fleet: sockets.fleet().map(|(address, socket)| handover::FleetSocket {
            address: *address,
            socket: socket.as_raw_fd(),
        }),
        servers: states.to_handover(),
        maintenance: maintenance::to_handover(&balancer.registry),
        orders: balancer.fleet_orders(),
        instance: Some(balancer.identity().id().to_string()),
        history: history.as_ref().map(AsRawFd::as_raw_fd),
        changes: balancer.changes(),
        // A secret: it is passed only here, in memory that only the new process has.
        affinity_key: balancer.registry.affinity_key().map(AffinityKey::to_text),
    };
    let manifest =
        serde_json::to_vec(&manifest).map_err(|error| cannot("write the manifest", &error))?;
    let memory = os::handover::memory_file("weir-handover", &manifest)
        .map_err(|error| cannot("make a file in memory", &error))?;
    let mut descriptors: Vec<BorrowedFd<'_>> = vec![says.as_fd(), memory.as_fd()];
    descriptors.extend(history.as_ref().map(AsFd::as_fd));
    descriptors.extend(all(sockets));
    let mut command = program.command();
    command.env(VARIABLE, memory.as_raw_fd().to_string());
    // They are about this process. Without them, the new one takes over the duty to report to the watchdog, and looks for
    // no sockets of the service manager.
    for name in os::socket_activation::VARIABLES.iter().chain(&["WATCHDOG_PID"]) {
        command.env_remove(name);
    }
    let process = os::handover::spawn(command, &descriptors)
        .map_err(|error| format!("cannot start {program}: {error}"))?;
    // Closes this process's end, so that the pipe ends when the new process exits.
    drop(says);
    let (commands, pid) = (commands.clone(), process.id());
    let listening = std::thread::Builder::new()
        .name("weir-successor".to_owned())
        .spawn(move || commands.successor_said(pid, hear(hears)));
    let handed = HandedOver {
        listeners: sockets.groups().iter().map(|group| group.name.to_string()).collect(),
        sockets: sockets.groups().iter().map(|group| group.sockets.len()).sum(),
        servers: states.len(),
    };
    match listening {
        Ok(_) => Ok((process, channel, handed)),
        Err(error) => {
            end(process, channel, end_max(balancer));
            Err(cannot("make a thread", &error))
        }
    }
}

/// Returns the numbers of the descriptors, by listener.
fn listeners(sockets: &Sockets) -> Vec<handover::Listener> {
    let groups = sockets.groups().iter().map(|group| {
        let sockets = group.sockets.iter().map(AsRawFd::as_raw_fd).collect();
        handover::Listener {
            name: group.name.to_string(),
            address: group.address,
            sockets,
            file: group.file.map(SocketFile::device_and_inode),
        }
    });
    groups.collect()
}

/// Reads the new process's message: one line, or nothing if it exits first.
fn hear(pipe: PipeReader) -> String {
    let mut said = Vec::new();
    let mut reader = BufReader::new(pipe.take(MESSAGE_MAX_BYTES));
    if let Err(error) = reader.read_until(b'\n', &mut said) {
        tracing::debug!(%error, "cannot read from the new process");
    }
    String::from_utf8_lossy(&said).into_owned()
}

impl Successor {
    /// Returns whether it has exceeded the maximum time to start.
    pub(crate) fn is_late(&self) -> bool {
        os::clock::now() - self.began > READY_MAX
    }

    /// Returns whether it has this process id.
    pub(crate) fn is_process(&self, pid: u32) -> bool {
        self.process.id() == pid
    }

    /// Handles the new process's message: answers the caller that requested the upgrade, and returns
    /// the process id if it serves, and the pipe to close when this process has left. If it does not serve, ends it.
    pub(crate) fn takes_over(self, said: &str) -> Option<(u32, PipeReader)> {
        let (pid, version) = match serde_json::from_str(said) {
            Ok(Message::Ready { ready, version }) => (ready, version),
            Ok(Message::Failed { failed }) => {
                self.give_up(&failed);
                return None;
            }
            Err(_) => {
                self.give_up("it exited before it was ready; see its messages in the log");
                return None;
            }
        };
        let version = version.unwrap_or_else(|| "unknown".to_owned());
        let handed = serde_json::json!(self.handed);
        let took = os::clock::now() - self.began;
        tracing::info!(pid, %version, ?took, %handed, "upgrade: a new process serves");
        // The new process is heard from the second message on, and reports to the watchdog half of its time later.
        service_manager::notify(os::notify::alive());
        service_manager::notify(os::notify::main_process(pid));
        if let Some(reply) = self.reply {
            let predecessor =
                Process { pid: std::process::id(), version: env!("CARGO_PKG_VERSION").to_owned() };
            reply.send(Ok(Upgrade {
                result: UpgradeResult::Upgraded.into(),
                pid,
                version,
                predecessor,
                took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                handed_over: self.handed,
            }));
        }
        Some((pid, self.channel))
    }

    /// Ends it; this process continues to serve.
    pub(crate) fn give_up(self, why: &str) {
        end(self.process, self.channel, self.end_max);
        self.switches.release();
        fail(self.reply, why);
    }
}

/// Forwards SIGHUP to the process that serves now.
pub(crate) fn hang_up(pid: u32) {
    if let Err(error) = os::process::signal(pid, Ask::HangUp) {
        tracing::error!(%error, pid, "cannot forward SIGHUP to the new process");
    }
}

fn end_max(balancer: &Balancer) -> Duration {
    balancer.published().snapshot.drain_max + END_MARGIN
}

/// Ends it in the background. It may already serve although its message was lost, so it is asked to
/// drain, and killed only after `end_max`. `channel` stays open until then.
fn end(
    process: Child,
    channel: PipeReader,
    end_max: Duration,
) -> Option<JoinHandle<io::Result<ExitStatus>>> {
    let pid = process.id();
    let ending = move || {
        let status = wait_for_end(process, end_max);
        drop(channel);
        status
    };
    match std::thread::Builder::new().name("weir-successor-end".to_owned()).spawn(ending) {
        Ok(thread) => Some(thread),
        Err(error) => {
            // Its process id cannot be reused, because it has not been waited for.
            let asked = os::process::signal(pid, Ask::Terminate);
            tracing::warn!(%error, ?asked, pid, "cannot wait for the new process to exit");
            None
        }
    }
}

fn wait_for_end(mut process: Child, end_max: Duration) -> io::Result<ExitStatus> {
    let deadline = os::clock::now() + end_max;
    if process.try_wait()?.is_none() {
        os::process::signal(process.id(), Ask::Terminate)?;
    }
    while process.try_wait()?.is_none() {
        if os::clock::now() >= deadline {
            tracing::warn!(pid = process.id(), "the new process does not exit; killing it");
            process.kill()?;
            break;
        }
        std::thread::park_timeout(END_LOOK);
    }
    let status = process.wait();
    tracing::debug!(?status, "the new process has exited");
    status
}

fn fail(reply: Option<Reply<Upgrade>>, why: &str) {
    tracing::error!("upgrade failed; this process continues to serve: {why}");
    if let Some(reply) = reply {
        reply.send(Err(ReloadError::Failed(why.to_owned())));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    /// A shell that does `this` when it is asked to end, and is past the point where it could miss
    /// that.
    fn shell(this: &str) -> Child {
        let script = format!("trap '{this}' TERM; echo ready; while :; do sleep 0.01; done");
        let mut command = Command::new("sh");
        let mut child =
            command.args(["-c", &script]).stdout(Stdio::piped()).spawn().expect("a shell");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("its word");
        assert_eq!(line, "ready\n");
        child
    }

    fn channel() -> PipeReader {
        io::pipe().expect("a pipe").0
    }

    #[test]
    fn one_that_is_given_up_may_finish_what_it_has() {
        let thread = end(shell("exit 7"), channel(), Duration::from_mins(1)).unwrap();
        assert_eq!(thread.join().unwrap().unwrap().code(), Some(7));
    }

    #[test]
    fn one_that_does_not_end_is_killed() {
        let thread = end(shell(""), channel(), Duration::from_millis(100)).unwrap();
        assert_eq!(thread.join().unwrap().unwrap().signal(), Some(9));
    }
}
