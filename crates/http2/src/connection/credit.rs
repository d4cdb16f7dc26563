//! Receive windows: consumed content is credited to the peer, which may then send as much again.

use model::Moment;

use super::Connection;
use crate::frame::kind;
use crate::streams::{Receiving, StreamKey};

impl Connection {
    /// Credits consumed content to the peer, which may then send as much again. Releasing a stream
    /// credits the rest.
    pub fn consumed(&mut self, key: StreamKey, count: usize, now: Moment) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        let count = stream.unconsumed.min(count as u32);
        stream.unconsumed -= count;
        self.credit_connection(count);
        self.credit_stream(key, count, now);
    }

    /// Credits bytes to a stream's receive window.
    pub(super) fn credit_stream(&mut self, key: StreamKey, count: u32, now: Moment) {
        let wanted = self.window_size.window();
        let first = self.config.window_bytes;
        let Some(stream) = self.streams.get_mut(key) else { return };
        if self.failed || stream.receiving != Receiving::Body {
            return;
        }
        stream.credit += count;
        if stream.credit < stream.window / 2 {
            return;
        }
        // The stream's window follows `wanted`; it shrinks by withholding credit.
        let before = stream.window;
        let window = wanted.max(before.saturating_sub(stream.credit));
        let more = (stream.credit + window).saturating_sub(before);
        (stream.credit, stream.window) = (0, window);
        stream.receive_window += i64::from(more);
        let id = stream.id;
        // The connection's window must cover those of all streams.
        self.shared_window.follow(before.max(first), window.max(first));
        self.credit_connection(0);
        if more == 0 {
            return;
        }
        self.output.put_control(kind::WINDOW_UPDATE, 0, id, &more.to_be_bytes());
        if self.window_size.begins_probe(now) {
            self.output.put_control(kind::PING, 0, 0, &crate::window::PROBE);
        }
    }

    /// Credits bytes to the connection's receive window.
    pub(super) fn credit_connection(&mut self, count: u32) {
        if let Some(more) = self.shared_window.credit(count)
            && !self.failed
        {
            self.output.put_control(kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        }
    }
}
