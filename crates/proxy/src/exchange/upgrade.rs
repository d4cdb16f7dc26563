//! Protocol upgrades: what follows a 101, or replaces it when the server's answer does not fit the
//! request.

use decide::Slot;
use model::Cause;

use super::Exchange;
use super::forward::Forwarding;
use super::local;
use crate::answer::Answer;
use crate::balance;
use crate::client::{After, Client};
use crate::head;
use crate::roster::Phase;
use crate::server_connection::ServerConnection;
use crate::tunnel::{self, End, Tunnel};

impl Forwarding<'_, '_> {
    /// Returns whether the response is a 101 that the request does not allow. The two sides must
    /// agree on where the request ends and the new protocol begins.
    pub(super) fn is_unexpected_upgrade(&self) -> bool {
        let scratch = &*self.exchange.scratch;
        scratch.response.status() == 101
            && !(head::agrees(&scratch.request, &scratch.response) && self.upload.pump.is_done())
    }

    /// Returns whether the response is a success without an upgrade, which an HTTP/2 client would
    /// take for one (RFC 8441 section 4).
    pub(super) fn is_mistakable_success(&self) -> bool {
        let Exchange { client, scratch, .. } = &*self.exchange;
        client.stream.is_exchange()
            && scratch.request.upgrade().is_some()
            && (200..300).contains(&scratch.response.status())
    }

    /// Forwards a 101, then everything that the two sides exchange. The slot is held to the end: a
    /// tunnel occupies its server as a request does.
    pub(super) async fn upgrade(&mut self, slot: Slot, mut server: Box<ServerConnection>) -> After {
        if self.is_unexpected_upgrade() {
            return self
                .refuse_upgrade(
                    slot,
                    server,
                    "101 without the Upgrade that was asked for, or before the end of the request",
                )
                .await;
        }
        let Exchange { client, identity, rates, scratch, record, .. } = &mut *self.exchange;
        scratch.up = self.upload.pump.take_pending();
        scratch.down.clear();
        let own = local::own_fields(
            client,
            Some(self.route),
            &scratch.request,
            (rates, identity.as_deref()),
        );
        let session = balance::session_carrier(self.forward);
        head::write_informational(&scratch.response, &own, session, &mut scratch.down);
        if let Err(cause) = client.send(&scratch.down).await {
            record.end(cause);
            self.abandon(slot, server);
            return After::Close;
        }
        client.entry.set(Phase::Tunnel);
        let Client { stream, buffer, watchdog, via, .. } = &mut **client;
        let tunnel = Tunnel {
            client: End { stream, buffer },
            server: End { stream: &server.stream, buffer: &mut server.buffer },
            service: self.service,
            listener: &via.live,
        };
        let cause = tunnel.run(watchdog, record).await;
        record.ask_tcp(&mut server, slot.endpoint());
        drop(slot);
        record.end(cause);
        tunnel::close(server.stream, cause);
        if tunnel::is_orderly(cause) { After::Close } else { After::Reset }
    }

    /// Answers instead of forwarding a response that does not fit an upgrade. The server may go on
    /// working, so its slot is not free yet; the client does not hold it, however slowly it reads.
    pub(super) async fn refuse_upgrade(
        &mut self,
        slot: Slot,
        server: Box<ServerConnection>,
        detail: &'static str,
    ) -> After {
        self.abandon(slot, server);
        let received_status = Some(self.exchange.scratch.response.status());
        let cause = Cause::HttpUpgradeFailed;
        self.refuse(Answer { detail, received_status, ..Answer::of(cause) }).await
    }
}
