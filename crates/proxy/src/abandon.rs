//! Requests that nobody waits for any more, but which a server may still be working on.
//!
//! A limit that counts only what clients wait for lets a server be overrun by those who give up
//! and ask again. So the slot stays taken until the server is done: it is told that nobody listens
//! any more, and what it sends is dropped until it closes.

use decide::Slot;
use model::Service;

use crate::linger::{Patience, linger};
use crate::server_connection::ServerConnection;
use crate::watchdog::Watchdog;

/// Of a response that nobody wants, this much is read; a server that sends more is cut off.
const DROPPED_BYTES_MAX: u64 = 1024 * 1024;

/// Lets go of a connection on which a request was sent and not answered to its end. Where the
/// server has a limit, its slot is freed when it closes, sends too much, or has had its response
/// timeout once more.
pub(crate) fn abandon(service: &Service, slot: Slot, server: ServerConnection) {
    if slot.endpoint().slots.max() == 0 {
        return;
    }
    if server.stream.is_exchange() {
        // It is told so itself, in so many words; whether it heeds that shows in nothing.
        return server.stream.reset();
    }
    let patience = service.timeouts.response;
    let until = os::clock::now() + patience;
    tokio::task::spawn_local(async move {
        let ServerConnection { stream, mut buffer, .. } = server;
        let quiet_max = patience;
        let patience = Patience { until, quiet_max, bytes_max: DROPPED_BYTES_MAX };
        linger(&stream, &mut buffer, &mut Watchdog::new(), patience).await;
        stream.reset();
        drop(slot);
    });
}
