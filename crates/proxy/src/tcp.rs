//! TCP mode: forwards each connection to a server, unparsed.

use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use decide::{Slot, placement};
use health::blame::{Ended, Outcome, Sent, WaitingFor};
use model::{Cause, RouteRetries, ServiceId};

use crate::account::{self, Record};
use crate::buffer::Buffer;
use crate::client::client_gone;
use crate::flight::Flight;
use crate::isolate::isolated;
use crate::roster::{Entry, Phase};
use crate::server_connection::{self, Introduced, Reach, ServerConnection};
use crate::servers::{Attempt, Chosen, Failure, Place, Resend, Servers};
use crate::tunnel::{self, End, Tunnel};
use crate::via::Accepted;
use crate::watchdog::{Direction, Limits, Watchdog};
use crate::worker::Worker;

/// Forwards a connection to a server of this service, to its end.
pub(crate) async fn serve(
    worker: &Rc<Worker>,
    mut accepted: Accepted,
    mut watchdog: Watchdog,
    id: ServiceId,
) {
    let mut buffer =
        std::mem::replace(&mut accepted.buffer, Buffer::new(Rc::clone(&worker.buffers)));
    let random = worker.rng.borrow_mut().u128(..);
    let mut record = Record::begin(worker, &accepted.via.plane, random, None, false);
    record.service = Some(id);
    let entry = worker.roster.enter().await;
    entry.begin(Flight {
        since: record.started,
        id: record.id,
        client: accepted.peer,
        trusted: false,
        plane: Rc::clone(&accepted.via.plane),
        listener: accepted.via.listener,
        request: None,
        service: Some(id),
        server: None,
        attempts: 0,
    });
    let forwarding = TcpForwarding {
        worker,
        accepted: &accepted,
        buffer: &mut buffer,
        watchdog: &mut watchdog,
        entry: &entry,
        record: &mut record,
        id,
    };
    let cause = isolated(worker, pin!(forwarding.run())).await.unwrap_or_else(|cause| cause);
    record.end(cause);
    account::finish_tcp(worker, &accepted, &record);
    tunnel::close(accepted.stream, cause);
}

/// A connection being forwarded to a service.
struct TcpForwarding<'a> {
    worker: &'a Rc<Worker>,
    accepted: &'a Accepted,
    buffer: &'a mut Buffer,
    watchdog: &'a mut Watchdog,
    entry: &'a Entry,
    record: &'a mut Record,
    id: ServiceId,
}

impl TcpForwarding<'_> {
    /// Finds a server that accepts a connection, and moves bytes both ways.
    async fn run(mut self) -> Cause {
        let (worker, accepted, now) = (self.worker, self.accepted, self.record.started);
        let service = accepted.via.plane.published.snapshot.service(self.id);
        self.record.to_end = service.timeouts.total.map(|total| (now + total, Cause::TotalTimeout));
        let key = placement::client_key(service, accepted.peer.ip());
        let mut servers = Servers::new(
            worker,
            &accepted.via.plane,
            self.id,
            (key, None),
            &RouteRetries::OF_SERVICE,
        );
        let (slot, mut server) = match servers.reach(&mut self, now).await {
            Ok(reached) => reached,
            Err(none) => return none.reason.cause,
        };
        drop(servers);
        let TcpForwarding { buffer, watchdog, entry, record, .. } = self;
        entry.set(Phase::Tunnel);
        let tunnel = Tunnel {
            client: End { stream: &accepted.stream, buffer },
            server: End { stream: &server.stream, buffer: &mut server.buffer },
            service,
            listener: &accepted.via.live,
        };
        let cause = tunnel.run(watchdog, record).await;
        record.ask_tcp(&mut server, slot.endpoint());
        tunnel::close(server.stream, cause);
        cause
    }
}

impl Attempt for TcpForwarding<'_> {
    fn place(&mut self) -> Place<'_> {
        let TcpForwarding { accepted, buffer, watchdog, entry, record, .. } = self;
        Place { stream: &accepted.stream, buffer, watchdog, entry, record, half_close: true }
    }

    /// Connects to the server of `to`, until the client has reset its own connection or the
    /// service's `timeouts.total` has passed.
    async fn attempt(&mut self, to: &Chosen<'_>) -> Result<Box<ServerConnection>, Failure> {
        let TcpForwarding { worker, accepted, buffer, watchdog, entry, record, id } = self;
        entry.set(Phase::Connecting);
        let limits = Limits::default();
        if let Some((at, cause)) = record.to_end {
            limits.set(Direction::Whole, at, cause);
        }
        let plane = &accepted.via.plane;
        let reach = Reach {
            service: plane.published.snapshot.service(*id),
            tls: plane.tls.services[id.0 as usize].as_ref(),
            client: Introduced { address: accepted.peer, stream: &accepted.stream },
        };
        let dialling = pin!(server_connection::dial(&reach, to.slot.endpoint(), &worker.buffers));
        let mut dialling = to.connected(dialling);
        let begun = os::clock::now();
        let dialled = poll_fn(|cx| {
            // A client that has closed its sending side still waits: each direction ends
            // separately.
            match client_gone(&accepted.stream, buffer, false, cx) {
                Poll::Ready(cause) if cause != Cause::ClientClosed => Poll::Ready(Err(cause)),
                _ => Pin::new(&mut dialling).poll(cx),
            }
        });
        let dialled = watchdog.guard(&limits, dialled).await;
        record.dialled(os::clock::now() - begun, dialled.is_ok());
        dialled.map_err(|cause| Failure::new(cause, Sent::Connecting))
    }

    fn accepted(&mut self, servers: &mut Servers<'_>, slot: &Slot, _: &ServerConnection) {
        // Accepting the connection is all that is expected of a server.
        let accepts = Ended::alone(Outcome::Answered(200), WaitingFor::Server, Sent::Connecting);
        servers.judge(slot, accepts, (self.record.begun_at(), os::clock::now()));
    }

    fn resend(&self) -> Resend {
        // A connection that has carried no byte can be replaced, whatever it is for.
        Resend { idempotent: false, kept: true, informed: false }
    }
}
