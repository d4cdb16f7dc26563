//! Requests whose client has gone but which a server may still be processing.
//!
//! A concurrency limit that only counts requests with a waiting client lets clients that give up
//! and retry overload a server. So the slot stays taken until the server has finished: the server
//! sees the write side closed, and whatever it sends is discarded until it closes.

use std::sync::Arc;

use decide::Slot;
use model::Service;
use observe::ServiceCounters;

use crate::linger::{Patience, linger};
use crate::server_connection::ServerConnection;
use crate::watchdog::Watchdog;

/// How much of an abandoned response is read before the connection is cut.
const DROPPED_BYTES_MAX: u64 = 1024 * 1024;

/// Drops a connection that carried a request whose response is incomplete. If the server has a
/// concurrency limit, the slot is released when the server closes, sends more than the bound, or
/// exceeds its response timeout a second time. Until then the server works; that is added to `counters`.
pub(crate) fn abandon(
    service: &Service,
    counters: &Arc<ServiceCounters>,
    slot: Slot,
    server: Box<ServerConnection>,
) {
    if slot.endpoint().slots.max() == 0 {
        return;
    }
    if server.stream.is_exchange() {
        // The stream reset tells the server explicitly; whether it stops working cannot be
        // observed.
        return server.stream.reset();
    }
    let patience = service.timeouts.response;
    let begun = os::clock::now();
    let until = begun + patience;
    let counters = Arc::clone(counters);
    tokio::task::spawn_local(async move {
        let ServerConnection { stream, mut buffer, .. } = *server;
        let quiet_max = patience;
        let patience = Patience { until, quiet_max, bytes_max: DROPPED_BYTES_MAX };
        linger(&stream, &mut buffer, &mut Watchdog::new(), patience).await;
        stream.reset();
        drop(slot);
        let worked = os::clock::now() - begun;
        counters.worked_us.add(u64::try_from(worked.as_micros()).unwrap_or(u64::MAX));
    });
}
