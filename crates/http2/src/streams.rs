//! The streams of a connection.

use crate::priority::{Priority, URGENCY_DEFAULT};

/// Identifies a stream of a connection. Keys of released streams are invalid and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamKey {
    slot: u32,
    /// The number of the stream among all of the connection.
    number: u32,
}

impl StreamKey {
    /// Returns the stream's slot: a small number, unique among the streams that exist at the same
    /// time, for tables beside the connection.
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// State of the message that the peer sends.
///
/// ```text
/// Head ─ final head ─▶ Body ─ END_STREAM ─▶ Ended
/// ```
/// A request's stream starts with `Body` or `Ended`. A reset ends both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiving {
    Head,
    Body,
    Ended,
}

/// State of the message that this side sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    Head,
    Body,
    Ended,
}

/// Whether a stream has to wait before it can send content.
///
/// ```text
/// Free ─ no room ─▶ Queued ─ next_writable ─▶ Granted ─ send_data ─▶ Free, or waits again
///   └─ its window is shut ─▶ Shut ─ the window opens ─▶ Queued
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Free,
    /// Waits for its own send window.
    Shut,
    /// Waits in the connection's queue.
    Queued,
    /// May send a frame.
    Granted,
}

/// An extended CONNECT: the protocol, and the value that accepts its key.
pub(crate) type Upgrade = Box<(String, String)>;

#[derive(Debug)]
pub(crate) struct Stream {
    number: u32,
    /// 0 while a request's head has not been sent.
    pub(crate) id: u32,
    pub(crate) receiving: Receiving,
    pub(crate) sending: Sending,
    /// How much the peer still accepts, in bytes. Negative after it has lowered its initial window.
    pub(crate) send_window: i64,
    /// How much the peer may still send, in bytes.
    pub(crate) receive_window: i64,
    /// The receive window when everything has been consumed.
    pub(crate) window: u32,
    /// Received bytes that have not been consumed.
    pub(crate) unconsumed: u32,
    /// Consumed bytes that have not been credited to the peer.
    pub(crate) credit: u32,
    /// Content that is missing from the peer's content-length.
    pub(crate) content_left: Option<u64>,
    /// The request is a HEAD: its response has no body.
    pub(crate) is_head: bool,
    /// It is an extended CONNECT.
    pub(crate) upgrades: bool,
    pub(crate) upgrade: Option<Upgrade>,
    pub(crate) turn: Turn,
    /// Number of informational responses received.
    pub(crate) informational: u8,
    /// The priority, if the peer has signalled one.
    pub(crate) priority: Option<Priority>,
}

impl Stream {
    pub(crate) fn new(receiving: Receiving, send_window: u32, window: u32) -> Stream {
        Stream {
            number: 0,
            id: 0,
            receiving,
            sending: Sending::Head,
            send_window: i64::from(send_window),
            receive_window: i64::from(window),
            window,
            unconsumed: 0,
            credit: 0,
            content_left: None,
            is_head: false,
            upgrades: false,
            upgrade: None,
            turn: Turn::Free,
            informational: 0,
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

/// The streams that have not been released. Slots are reused.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    slots: Vec<Option<Stream>>,
    free: Vec<u32>,
    /// Open streams: identifier and slot, in ascending order of identifiers.
    by_id: Vec<(u32, u32)>,
    /// The number of streams ever added.
    added: u32,
    /// Number of streams with a priority.
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

    /// Sets a stream's identifier, which must be higher than all others.
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
            // Most frames belong to the newest stream.
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

    /// Returns whether any stream has a priority.
    pub(crate) fn are_prioritised(&self) -> bool {
        self.prioritised > 0
    }

    /// Removes a stream from the open ones if it is complete.
    pub(crate) fn settle(&mut self, key: StreamKey) {
        if let Some(stream) = self.get(key)
            && stream.is_complete()
            && let Ok(at) = self.by_id.binary_search_by_key(&stream.id, |&(id, _)| id)
        {
            self.by_id.remove(at);
        }
    }

    /// Removes a stream that is complete.
    pub(crate) fn remove(&mut self, key: StreamKey) {
        let Some(stream) = self.get(key) else { return };
        self.prioritised -= u32::from(stream.priority.is_some());
        self.slots[key.slot()] = None;
        self.free.push(key.slot);
        if self.free.len() == self.slots.len() {
            self.slots.clear();
            self.free.clear();
        }
    }

    /// Returns the number of open streams.
    pub(crate) fn open(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the number of streams that have not been released.
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

    /// Frees unused memory.
    pub(crate) fn shrink(&mut self) {
        self.slots.shrink_to_fit();
        self.free.shrink_to_fit();
        self.by_id.shrink_to_fit();
    }
}
