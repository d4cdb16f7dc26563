//! Where other threads ask the main thread for what it alone does: a reload, an upgrade.
//!
//! Errands wait in a short queue; whoever asks waits for the answer. Signals ask too, but nobody
//! waits for theirs.

use std::sync::mpsc::{SyncSender, sync_channel};

use admin::ReloadError;
use serde_json::Value;
use tokio::sync::mpsc;

/// Errands that wait for the main thread. Only people and their scripts send any.
const ERRANDS_MAX: usize = 8;

/// What came of an errand: a receipt, or why not.
pub(crate) type Answer = Result<Value, ReloadError>;

/// What the main thread is asked to do.
pub(crate) enum Errand {
    /// Load the configuration anew.
    Reload(Reply),
    /// Let a new process take over.
    Upgrade(Reply),
    /// Hear what the new process of that number has to say: a line, or nothing if it ended before it
    /// had one.
    HearSuccessor(u32, String),
}

/// Where the answer goes.
pub(crate) struct Reply(SyncSender<Answer>);

impl Reply {
    pub(crate) fn send(self, answer: Answer) {
        // Whoever asked may have gone.
        let _ = self.0.send(answer);
    }
}

/// Takes errands, on any thread.
#[derive(Clone)]
pub(crate) struct Desk(mpsc::Sender<Errand>);

/// The main thread's side.
pub(crate) type Errands = mpsc::Receiver<Errand>;

pub(crate) fn open() -> (Desk, Errands) {
    let (sender, errands) = mpsc::channel(ERRANDS_MAX);
    (Desk(sender), errands)
}

impl Desk {
    /// Has the configuration loaded anew, and waits until it is in force or refused.
    pub(crate) fn reload(&self) -> Answer {
        self.ask(Errand::Reload)
    }

    /// Has a new process take over, and waits until it serves or has failed.
    pub(crate) fn upgrade(&self) -> Answer {
        self.ask(Errand::Upgrade)
    }

    /// Passes on what the new process said. Waits for room, on a thread of its own: unheard, a
    /// process that serves would be given up.
    pub(crate) fn hear_successor(&self, pid: u32, said: String) {
        if self.0.blocking_send(Errand::HearSuccessor(pid, said)).is_err() {
            tracing::debug!("what the new process said comes too late: this one is ending");
        }
    }

    fn ask(&self, errand: impl FnOnce(Reply) -> Errand) -> Answer {
        let (reply, answer) = sync_channel(1);
        self.0.try_send(errand(Reply(reply))).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                ReloadError::Failed("too much is asked at once; try again".to_owned())
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_new_process_is_heard_though_much_is_asked_at_once() {
        let (desk, mut errands) = open();
        for _ in 0..ERRANDS_MAX {
            let (reply, _) = sync_channel(1);
            assert!(desk.0.try_send(Errand::Reload(Reply(reply))).is_ok());
        }
        let heard = std::thread::spawn({
            let desk = desk.clone();
            move || desk.hear_successor(7, "ready".to_owned())
        });
        drop(desk);
        for _ in 0..ERRANDS_MAX {
            assert!(matches!(errands.blocking_recv(), Some(Errand::Reload(_))));
        }
        let last = errands.blocking_recv();
        assert!(matches!(last, Some(Errand::HearSuccessor(7, _))));
        heard.join().unwrap();
    }

    #[test]
    fn whoever_asks_gets_an_answer_even_if_nobody_gives_one() {
        let (desk, mut errands) = open();
        let asking = std::thread::spawn({
            let desk = desk.clone();
            move || (desk.reload(), desk.upgrade())
        });
        match errands.blocking_recv() {
            Some(Errand::Reload(reply)) => reply.send(Ok(json!(7))),
            _ => panic!("a reload was asked for"),
        }
        let upgrade = errands.blocking_recv();
        assert!(matches!(upgrade, Some(Errand::Upgrade(_))));
        drop(upgrade);
        assert_eq!(asking.join().unwrap(), (Ok(json!(7)), Err(stopping())));
        drop(errands);
        assert_eq!(desk.reload(), Err(stopping()));
    }
}
