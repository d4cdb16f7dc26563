//! HTTP/2 connections in use, and requests that a server returned unprocessed, which are resent on
//! another connection.

use super::connection::State;
use super::failure::Failure;
use super::http2::Ended;
use super::worker::{Worker, nanos};

/// So often a request is sent again. A server that closes its connections in an orderly way gives a
/// request back once or twice; one that never takes it has refused it.
const SENT_AGAIN_MAX: u8 = 8;

impl Worker {
    /// Moves a connection of HTTP/2 on.
    pub(super) fn drive_http2(&mut self, index: usize, now: u64) {
        let Some(connection) = self.table.get(index) else { return };
        let State::Http2(http2) = &mut connection.state else { return };
        let recorder = &mut self.recorder;
        let in_flight = &mut self.in_flight;
        let put_back = &mut self.put_back;
        let mut refused = false;
        http2.drive(now, |ended| match ended {
            Ended::Received { bytes, body } => recorder.received(bytes, body),
            Ended::Sent(bytes) => recorder.sent(bytes),
            Ended::Whole(moments, status) => {
                *in_flight -= 1;
                recorder.completed(&moments, status, now);
            }
            Ended::Failed(failure) => {
                *in_flight -= 1;
                recorder.failed(failure, now);
            }
            Ended::Unprocessed(mut exchange) if exchange.sent_again < SENT_AGAIN_MAX => {
                refused = true;
                exchange.sent_again += 1;
                recorder.given_back();
                put_back.push_back(exchange);
            }
            Ended::Unprocessed(_) => {
                *in_flight -= 1;
                recorder.failed(Failure::StreamRefused, now);
            }
        });
        let (is_over, is_broken) = (http2.is_over(), http2.is_broken());
        let blocked = http2.is_blocked();
        let keeps = self.shared.plan.keep_alive || http2.under_way() > 0;
        let has_room = http2.has_room(self.shared.plan.streams_max);
        if is_over || !keeps {
            self.close(index);
            if is_broken {
                self.rest(now);
            }
            return;
        }
        match (has_room, refused) {
            (true, false) => self.offer(index),
            (true, true) => self.offer_last(index),
            (false, _) => self.withdraw(index),
        }
        self.listen(index, blocked);
    }

    /// Begins again what was put back, as far as there are connections for it.
    pub(crate) fn begin_put_back(&mut self, now: u64) {
        // Each once: what comes back meanwhile has its turn after the others' events.
        for _ in 0..self.put_back.len() {
            let Some(exchange) = self.put_back.pop_front() else { return };
            if !self.can_begin(exchange.target) {
                self.put_back.push_front(exchange);
                return;
            }
            self.begin(exchange, now);
        }
    }

    /// Whether something that was put back can begin.
    pub(crate) fn has_put_back(&self) -> bool {
        self.put_back.front().is_some_and(|exchange| self.can_begin(exchange.target))
    }

    /// Ends what was put back and found no connection for as long as a request may take.
    pub(super) fn end_put_back(&mut self, now: u64) {
        let plan = &self.shared.plan;
        let longest = nanos(plan.timeout + plan.connect_timeout);
        let before = self.put_back.len();
        self.put_back.retain(|exchange| now < exchange.moments.started + longest);
        for _ in self.put_back.len()..before {
            self.fail_one(Failure::ResponseTimeout, now);
        }
    }
}
