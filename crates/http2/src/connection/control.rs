//! Frames that concern the connection, a window, or a stream as a whole.

use model::Moment;

use super::receive::Happened;
use super::{Connection, EARLY_MAX, Event, GOAWAY_SEEN, Leaving, Role};
use crate::error::{Code, Ended, Violation};
use crate::frame::{Head, MAX_31, flag, kind, number};
use crate::priority::Priority;
use crate::streams::StreamKey;
use crate::window::PROBE;

impl Connection {
    pub(super) fn priority(&mut self, head: Head, payload: &[u8], now: Moment) -> Happened {
        if head.stream == 0 {
            return Err(Violation::protocol("PRIORITY without a stream"));
        }
        self.budget.spend(1, "PRIORITY frames", now)?;
        // Deprecated (RFC 9113 section 5.3.2): checked and otherwise ignored.
        let violation = match payload.len() {
            5 if number(payload) == Some(head.stream) => {
                Violation::protocol("a stream that depends on itself")
            }
            5 => return Ok(None),
            _ => Violation::size("PRIORITY is not 5 bytes"),
        };
        match self.streams.find(head.stream) {
            Some(key) => self.stream_violated(key, violation),
            None if self.is_idle(head.stream) => Err(violation),
            None => Ok(None),
        }
    }

    pub(super) fn rst_stream(&mut self, head: Head, payload: &[u8], now: Moment) -> Happened {
        let (Some(code), 4) = (payload.first_chunk(), payload.len()) else {
            return Err(Violation::size("RST_STREAM is not 4 bytes"));
        };
        if self.is_idle(head.stream) {
            return Err(Violation::protocol("RST_STREAM of an idle stream"));
        }
        let code = Code(u32::from_be_bytes(*code));
        let Some(key) = self.streams.find(head.stream) else {
            return self.budget.spend(1, "RST_STREAM of closed streams", now).map(|()| None);
        };
        self.end(key);
        if self.role == Role::Server {
            self.budget.resets()?;
        }
        let why = match (self.role, code) {
            (Role::Client { .. }, Code::REFUSED_STREAM) => Ended::Unprocessed,
            _ => Ended::ByPeer(code),
        };
        Ok(Some(Event::Ended { stream: key, why }))
    }

    pub(super) fn settings(&mut self, head: Head, payload: &[u8], now: Moment) -> Happened {
        if head.stream != 0 {
            return Err(Violation::protocol("SETTINGS of a stream"));
        }
        if head.has(flag::ACK) {
            if !payload.is_empty() {
                return Err(Violation::size("SETTINGS that acknowledge and set"));
            }
            return self.budget.spend(1, "SETTINGS", now).map(|()| None);
        }
        self.budget.spend(5 + payload.len() as u32 / 6, "SETTINGS", now)?;
        let before = self.peer.window;
        self.peer.apply(payload, self.role == Role::Server)?;
        self.encoder.limit(self.peer.header_table_bytes);
        // The change applies to open streams (RFC 9113 section 6.9.2).
        let change = i64::from(self.peer.window) - i64::from(before);
        if change != 0 {
            for stream in self.streams.iter_mut() {
                stream.send_window += change;
                if stream.send_window > i64::from(MAX_31) {
                    let rule = "SETTINGS that overflow a window";
                    return Err(Violation::new(Code::FLOW_CONTROL_ERROR, rule));
                }
            }
            let keys: Vec<StreamKey> = self.streams.keys().collect();
            for key in keys {
                self.queue_if_open(key);
            }
        }
        self.output.put_ordered(kind::SETTINGS, flag::ACK, 0, &[]);
        Ok(None)
    }

    pub(super) fn ping(&mut self, head: Head, payload: &[u8], now: Moment) -> Happened {
        if head.stream != 0 {
            return Err(Violation::protocol("PING of a stream"));
        }
        let Ok(payload) = <[u8; 8]>::try_from(payload) else {
            return Err(Violation::size("PING is not 8 bytes"));
        };
        if head.has(flag::ACK) {
            if payload == PROBE && self.window_size.ends_probe(now) {
                return Ok(None);
            }
            if payload == GOAWAY_SEEN && self.leaving == Leaving::Announced {
                self.go_away_finally();
                return Ok(None);
            }
        } else {
            self.output.put_control(kind::PING, flag::ACK, 0, &payload);
        }
        self.budget.spend(1, "PING frames", now)?;
        Ok(None)
    }

    pub(super) fn goaway(&mut self, head: Head, payload: &[u8], now: Moment) -> Happened {
        if head.stream != 0 {
            return Err(Violation::protocol("GOAWAY of a stream"));
        }
        let (Some(last), Some(code)) =
            (number(payload), payload.get(4..).and_then(<[u8]>::first_chunk))
        else {
            return Err(Violation::size("GOAWAY is shorter than 8 bytes"));
        };
        self.budget.spend(1, "GOAWAY frames", now)?;
        let code = Code(u32::from_be_bytes(*code));
        // It concerns streams that this side opens; a server opens none.
        let last = if self.role == Role::Server { MAX_31 } else { last };
        let is_first = self.peer_last.is_none();
        // It must not increase (RFC 9113 section 6.8).
        self.peer_last = Some(self.peer_last.map_or(last, |before| before.min(last)));
        Ok(is_first.then_some(Event::GoingAway(code)))
    }

    pub(super) fn window_update(&mut self, head: Head, payload: &[u8], now: Moment) -> Happened {
        let (Some(more), 4) = (number(payload), payload.len()) else {
            return Err(Violation::size("WINDOW_UPDATE is not 4 bytes"));
        };
        self.budget.spend(1, "WINDOW_UPDATE frames", now)?;
        let by_0 = Violation::protocol("WINDOW_UPDATE by 0");
        let overflows = Violation::new(Code::FLOW_CONTROL_ERROR, "WINDOW_UPDATE that overflows");
        if head.stream == 0 {
            if more == 0 {
                return Err(by_0);
            }
            self.send_window += i64::from(more);
            if self.send_window > i64::from(MAX_31) {
                return Err(overflows);
            }
            return Ok(None);
        }
        if self.is_idle(head.stream) {
            return Err(Violation::protocol("WINDOW_UPDATE of an idle stream"));
        }
        let Some(key) = self.streams.find(head.stream) else { return Ok(None) };
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        if more == 0 {
            return self.stream_violated(key, by_0);
        }
        stream.send_window += i64::from(more);
        if stream.send_window > i64::from(MAX_31) {
            return self.stream_violated(key, overflows);
        }
        self.queue_if_open(key);
        Ok(None)
    }

    pub(super) fn priority_update(&mut self, head: Head, payload: &[u8], now: Moment) -> Happened {
        self.budget.spend(1, "PRIORITY_UPDATE frames", now)?;
        let Some((id, value)) = payload.split_at_checked(4) else {
            return Err(Violation::size("PRIORITY_UPDATE is shorter than 4 bytes"));
        };
        let id = number(id).unwrap_or(0);
        if self.role != Role::Server || head.stream != 0 || id == 0 || id.is_multiple_of(2) {
            return Err(Violation::protocol("PRIORITY_UPDATE where none may be"));
        }
        let priority = Priority::parse(value);
        match self.streams.find(id) {
            Some(key) => self.streams.set_priority(key, priority),
            None if id > self.last_begun => {
                self.early.retain(|&(early, _)| early != id);
                if self.early.len() == EARLY_MAX {
                    self.early.pop_front();
                }
                self.early.push_back((id, priority));
            }
            None => {}
        }
        Ok(None)
    }
}
