//! How other threads make orders for the whole fleet.

use orders::{FleetOrder, WAIT_MAX};
use tokio::sync::mpsc::WeakSender;
use tokio::sync::mpsc::error::TrySendError;

use crate::ANSWER_MARGIN;
use crate::order::{Confirmed, NotOrdered};
use crate::run::Command;

/// Makes orders for the whole fleet, from any thread.
#[derive(Clone, Debug)]
pub struct Orderer {
    /// Weak, so that the control thread ends although others keep this.
    commands: WeakSender<Command>,
}

impl Orderer {
    pub(crate) fn new(commands: WeakSender<Command>) -> Orderer {
        Orderer { commands }
    }

    /// Makes an order, which takes effect here at once, and waits until all members have confirmed it, for 3 seconds at
    /// most. Blocks.
    ///
    /// # Errors
    /// The order was not made, or was replaced ([`NotOrdered::Replaced`]). After [`NotOrdered::Unavailable`] it may still
    /// be made later.
    pub fn order(&self, order: FleetOrder) -> Result<Confirmed, NotOrdered> {
        let (reply, confirmed) = std::sync::mpsc::sync_channel(1);
        let commands = self.commands.upgrade().ok_or(NotOrdered::Unavailable)?;
        let sent = commands.try_send(Command::Order(order, reply));
        drop(commands);
        sent.map_err(|error| match error {
            TrySendError::Full(_) => NotOrdered::Busy,
            TrySendError::Closed(_) => NotOrdered::Unavailable,
        })?;
        let answer = confirmed.recv_timeout(WAIT_MAX + ANSWER_MARGIN);
        answer.unwrap_or(Err(NotOrdered::Unavailable))
    }
}
