//! The streams of a connection.

use crate::priority::{Priority, URGENCY_DEFAULT};

/// Names a stream of one connection. The key of a stream that was released names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamKey {
    slot: u32,
    /// The number of the stream among all of the connection.
    number: u32,
}

impl StreamKey {
    /// Returns the stream's place among those that are held at the same time: a small number, for
    /// tables beside the connection.
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// How far the message has come that the peer sends.
///
/// ```text
/// Head ─ final head ─▶ Body ─ END_STREAM ─▶ Ended
/// ```
/// The head of a request is there when its stream begins. A reset ends both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiving {
    Head,
    Body,
    Ended,
}

/// How far the message has come that this side sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    Head,
    Body,
    Ended,
}

/// An extended CONNECT: the protocol, and what accepts its key.
pub(crate) type Upgrade = Box<(String, String)>;

#[derive(Debug)]
pub(crate) struct Stream {
    number: u32,
    /// 0 while a request's head has not been sent.
    pub(crate) id: u32,
    pub(crate) receiving: Receiving,
    pub(crate) sending: Sending,
    /// Not released yet.
    held: bool,
    /// What the peer still accepts. Negative after it has lowered its initial window.
    pub(crate) send_window: i64,
    /// What the peer may still send.
    pub(crate) receive_window: i64,
    /// What the receive window is when all has been consumed.
    pub(crate) window: u32,
    /// Consumed, and not announced to the peer yet.
    pub(crate) credit: u32,
    /// What is missing of the length that the peer's head stated.
    pub(crate) content_left: Option<u64>,
    /// The request is a HEAD: its response has no body.
    pub(crate) is_head: bool,
    /// It is an extended CONNECT.
    pub(crate) upgrades: bool,
    pub(crate) upgrade: Option<Upgrade>,
    /// Data waits to be sent.
    pub(crate) waits: bool,
    /// It was told that it is its turn to send.
    pub(crate) turn: bool,
    /// As signalled by the peer.
    pub(crate) priority: Option<Priority>,
}

impl Stream {
    pub(crate) fn new(receiving: Receiving, send_window: u32, window: u32) -> Stream {
        Stream {
            number: 0,
            id: 0,
            receiving,
            sending: Sending::Head,
            held: true,
            send_window: i64::from(send_window),
            receive_window: i64::from(window),
            window,
            credit: 0,
            content_left: None,
            is_head: false,
            upgrades: false,
            upgrade: None,
            waits: false,
            turn: false,
            priority: None,
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.receiving == Receiving::Ended && self.sending == Sending::Ended
    }

    pub(crate) fn urgency(&self) -> u8 {
        self.priority.map_or(URGENCY_DEFAULT, |priority| priority.urgency)
    }
}

/// The streams that are held or not complete. Their places are used again.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    slots: Vec<Option<Stream>>,
    free: Vec<u32>,
    /// Those on the wire: identifier and place, in ascending order, as identifiers are chosen.
    by_id: Vec<(u32, u32)>,
    /// The number of streams ever added.
    added: u32,
    /// Streams with a priority of their own.
    prioritised: u32,
}

impl Streams {
    pub(crate) fn add(&mut self, mut stream: Stream) -> StreamKey {
        self.added = self.added.wrapping_add(1);
        stream.number = self.added;
        self.prioritised += u32::from(stream.priority.is_some());
        let id = stream.id;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Some(stream);
        if id != 0 {
            self.by_id.push((id, slot));
        }
        StreamKey { slot, number: self.added }
    }

    /// Gives a stream its identifier, which is higher than all others.
    pub(crate) fn name(&mut self, key: StreamKey, id: u32) {
        if let Some(stream) = self.get_mut(key) {
            stream.id = id;
            self.by_id.push((id, key.slot));
        }
    }

    pub(crate) fn get(&self, key: StreamKey) -> Option<&Stream> {
        let stream = self.slots.get(key.slot())?.as_ref()?;
        (stream.number == key.number).then_some(stream)
    }

    pub(crate) fn get_mut(&mut self, key: StreamKey) -> Option<&mut Stream> {
        let stream = self.slots.get_mut(key.slot())?.as_mut()?;
        (stream.number == key.number).then_some(stream)
    }

    /// Returns the stream with this identifier.
    pub(crate) fn find(&self, id: u32) -> Option<StreamKey> {
        let at = match self.by_id.last() {
            // Most frames concern the newest stream.
            Some(&(last, _)) if last == id => self.by_id.len() - 1,
            _ => self.by_id.binary_search_by_key(&id, |&(id, _)| id).ok()?,
        };
        let slot = self.by_id[at].1;
        let stream = self.slots[slot as usize].as_ref()?;
        Some(StreamKey { slot, number: stream.number })
    }

    pub(crate) fn set_priority(&mut self, key: StreamKey, priority: Priority) {
        if let Some(stream) = self.get_mut(key)
            && stream.priority.replace(priority).is_none()
        {
            self.prioritised += 1;
        }
    }

    /// Returns whether any stream has a priority of its own.
    pub(crate) fn are_prioritised(&self) -> bool {
        self.prioritised > 0
    }

    /// Notes that its holder does not need it any more.
    pub(crate) fn release(&mut self, key: StreamKey) {
        if let Some(stream) = self.get_mut(key) {
            stream.held = false;
            self.settle(key);
        }
    }

    pub(crate) fn is_held(&self, key: StreamKey) -> bool {
        self.get(key).is_some_and(|stream| stream.held)
    }

    /// Removes what is not needed any more: from the wire's list what is complete, and altogether
    /// what is released besides.
    pub(crate) fn settle(&mut self, key: StreamKey) {
        let Some(stream) = self.get(key) else { return };
        if !stream.is_complete() {
            return;
        }
        let (id, held, prioritised) = (stream.id, stream.held, stream.priority.is_some());
        if let Ok(at) = self.by_id.binary_search_by_key(&id, |&(id, _)| id) {
            self.by_id.remove(at);
        }
        if held {
            return;
        }
        self.prioritised -= u32::from(prioritised);
        self.slots[key.slot()] = None;
        self.free.push(key.slot);
        if self.free.len() == self.slots.len() {
            self.slots.clear();
            self.free.clear();
        }
    }

    /// Returns the streams that are on the wire and not complete.
    pub(crate) fn open(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the streams that are held or open.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the open stream with the highest identifier, if that is above `id`.
    pub(crate) fn last_above(&self, id: u32) -> Option<StreamKey> {
        let &(last, _) = self.by_id.last()?;
        if last > id { self.find(last) } else { None }
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.slots.iter_mut().flatten()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = StreamKey> {
        let streams = (0..).zip(&self.slots);
        streams.filter_map(|(slot, stream)| {
            stream.as_ref().map(|stream| StreamKey { slot, number: stream.number })
        })
    }

    /// Frees memory that only waits for use.
    pub(crate) fn shrink(&mut self) {
        self.slots.shrink_to_fit();
        self.free.shrink_to_fit();
        self.by_id.shrink_to_fit();
    }
}
