//! Commands from other threads to the main thread: a reload, an upgrade, a new process's message.
//!
//! They wait in a short queue; the sender waits for the answer. Signals have the same effects but get
//! no answer: see [`crate::events`].

use std::sync::mpsc::{SyncSender, sync_channel};

use admin::ReloadError;
use admin_api::receipt;
use tokio::sync::mpsc;

/// Maximum number of commands in the queue. Only people and their scripts send commands.
const COMMANDS_MAX: usize = 8;

/// The result of a command: a receipt, or why it failed.
pub(crate) type Answer<T> = Result<T, ReloadError>;

/// A command for the main thread.
pub(crate) enum Command {
    /// Load the configuration again.
    Reload(Reply<receipt::Reload>),
    /// Let a new process take over.
    Upgrade(Reply<receipt::Upgrade>),
    /// Handle the message of the new process with this id: a line, or nothing if it ended without
    /// one.
    SuccessorSaid(u32, String),
}

/// Sends the answer to the sender of the command.
pub(crate) struct Reply<T>(SyncSender<Answer<T>>);

impl<T> Reply<T> {
    pub(crate) fn send(self, answer: Answer<T>) {
        // The sender may have given up.
        let _ = self.0.send(answer);
    }
}

/// Sends commands from any thread.
#[derive(Clone)]
pub(crate) struct CommandSender(mpsc::Sender<Command>);

/// Receives commands in the main thread.
pub(crate) type CommandReceiver = mpsc::Receiver<Command>;

pub(crate) fn channel() -> (CommandSender, CommandReceiver) {
    let (sender, receiver) = mpsc::channel(COMMANDS_MAX);
    (CommandSender(sender), receiver)
}

impl CommandSender {
    /// Reloads the configuration, and waits until it is in force or refused.
    pub(crate) fn reload(&self) -> Answer<receipt::Reload> {
        self.ask(Command::Reload)
    }

    /// Starts an upgrade, and waits until the new process serves or has failed.
    pub(crate) fn upgrade(&self) -> Answer<receipt::Upgrade> {
        self.ask(Command::Upgrade)
    }

    /// Passes on the new process's message. Blocks while the queue is full, so it needs its own
    /// thread: if the message were dropped, a process that serves would be ended.
    pub(crate) fn successor_said(&self, pid: u32, said: String) {
        if self.0.blocking_send(Command::SuccessorSaid(pid, said)).is_err() {
            tracing::debug!("the new process's message came too late: this process is exiting");
        }
    }

    fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Answer<T> {
        let (reply, answer) = sync_channel(1);
        self.0.try_send(command(Reply(reply))).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                ReloadError::Failed("too many pending commands; try again".to_owned())
            }
            mpsc::error::TrySendError::Closed(_) => stopping(),
        })?;
        answer.recv().unwrap_or_else(|_| Err(stopping()))
    }
}

fn stopping() -> ReloadError {
    ReloadError::Failed("the balancer is stopping".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_process_is_heard_while_the_queue_is_full() {
        let (commands, mut received) = channel();
        for _ in 0..COMMANDS_MAX {
            let (reply, _) = sync_channel(1);
            assert!(commands.0.try_send(Command::Reload(Reply(reply))).is_ok());
        }
        let heard = std::thread::spawn({
            let commands = commands.clone();
            move || commands.successor_said(7, "ready".to_owned())
        });
        drop(commands);
        for _ in 0..COMMANDS_MAX {
            assert!(matches!(received.blocking_recv(), Some(Command::Reload(_))));
        }
        let last = received.blocking_recv();
        assert!(matches!(last, Some(Command::SuccessorSaid(7, _))));
        heard.join().unwrap();
    }

    #[test]
    fn a_dropped_command_is_answered() {
        let (commands, mut received) = channel();
        let asking = std::thread::spawn({
            let commands = commands.clone();
            move || (commands.reload(), commands.upgrade())
        });
        let receipt = receipt::Reload { generation: 7, ..receipt::Reload::default() };
        match received.blocking_recv() {
            Some(Command::Reload(reply)) => reply.send(Ok(receipt.clone())),
            _ => panic!("a reload was asked for"),
        }
        let upgrade = received.blocking_recv();
        assert!(matches!(upgrade, Some(Command::Upgrade(_))));
        drop(upgrade);
        assert_eq!(asking.join().unwrap(), (Ok(receipt), Err(stopping())));
        drop(received);
        assert_eq!(commands.reload(), Err(stopping()));
    }
}
