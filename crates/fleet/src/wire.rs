//! Members and the membership protocol's headers as bytes.
//!
//! Numbers are big endian. A text is its length in one byte and its bytes. A member is:
//!
//! | field | form |
//! |---|---|
//! | name | text; empty in a header for "the member at this address" |
//! | family, address, port | 1 byte 4 or 6, then 4 or 16 bytes, then 2 |
//! | zone | text; empty: none |
//! | host | text; empty: as the name |
//! | start | 16 bytes |
//! | generation | 8 bytes |
//! | version | 1 byte |
//!
//! Hostile bytes are refused; no allocation is larger than a text of 64 bytes. Texts have no control characters.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::{Buf, BufMut};
use foca::{Header, Message, State};

use crate::member::{GENERATION_END, Id, Member, is_valid_text};
use crate::start::StartId;

/// The code of foca's `TurnUndead`.
const TURN_UNDEAD: u8 = 10;

/// How many names of members are remembered, of members that live and that are down. Above it, messages of
/// further members are refused.
pub const MEMBERS_MAX: usize = 8_192;

/// Bytes that are not a message of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a malformed or oversized membership message")
    }
}

impl std::error::Error for Malformed {}

/// A member as its bytes state it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawId<'a> {
    pub(crate) name: &'a str,
    pub(crate) address: SocketAddr,
    zone: &'a str,
    host: &'a str,
    start: StartId,
    generation: u64,
    version: u8,
}

impl RawId<'_> {
    /// As [`Id::rank`].
    pub(crate) fn rank(&self) -> (u64, StartId) {
        (self.generation, self.start)
    }

    fn is(&self, id: &Id) -> bool {
        let member = id.member();
        id.rank() == self.rank()
            && *member.name == *self.name
            && member.address == self.address
            && member.zone.as_deref().unwrap_or("") == self.zone
            && *member.host == *self.host
            && member.version == self.version
    }

    fn to_id(self) -> Id {
        let name: Arc<str> = Arc::from(self.name);
        let host = if self.host == self.name { name.clone() } else { Arc::from(self.host) };
        let zone = (!self.zone.is_empty()).then(|| Arc::from(self.zone));
        let member = Member {
            name,
            address: self.address,
            zone,
            host,
            start: self.start,
            version: self.version,
        };
        Id::new(member, self.generation)
    }
}

/// Reads from the front of a slice.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        let len = usize::from(self.byte()?);
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        std::str::from_utf8(taken).ok().filter(|text| is_valid_text(text)).ok_or(Malformed)
    }

    pub(crate) fn id(&mut self) -> Result<RawId<'a>, Malformed> {
        let name = self.text()?;
        let ip = match self.byte()? {
            4 => IpAddr::from(self.array::<4>()?),
            6 => IpAddr::from(self.array::<16>()?),
            _ => return Err(Malformed),
        };
        let address = SocketAddr::new(ip, u16::from_be_bytes(self.array()?));
        let (zone, host) = (self.text()?, self.text()?);
        let start = StartId(self.array()?);
        let generation = u64::from_be_bytes(self.array()?);
        let version = self.byte()?;
        if generation >= GENERATION_END {
            return Err(Malformed);
        }
        let host = if host.is_empty() { name } else { host };
        Ok(RawId { name, address, zone, host, start, generation, version })
    }

    fn state(&mut self) -> Result<(State, u16), Malformed> {
        let state = match self.byte()? {
            0 => State::Alive,
            1 => State::Suspect,
            2 => State::Down,
            _ => return Err(Malformed),
        };
        Ok((state, u16::from_be_bytes(self.array()?)))
    }
}

/// Returns sender and addressee of a message of foca.
pub(crate) fn peek(bytes: &[u8]) -> Result<(RawId<'_>, RawId<'_>), Malformed> {
    let mut reader = Reader(bytes);
    let src = reader.id()?;
    let _incarnation = reader.array::<2>()?;
    Ok((src, reader.id()?))
}

/// Returns whether these bytes are a message of foca's kind `TurnUndead`.
pub(crate) fn is_turn_undead(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    let header = (reader.id(), reader.array::<2>(), reader.id());
    matches!(header, (Ok(_), Ok(_), Ok(_))) && reader.0.first() == Some(&TURN_UNDEAD)
}

/// Appends a text, which has at most 64 bytes.
pub(crate) fn put_text(text: &str, into: &mut Vec<u8>) {
    into.push(text.len() as u8);
    into.extend_from_slice(text.as_bytes());
}

pub(crate) fn put_id(id: &Id, into: &mut Vec<u8>) {
    let member = id.member();
    put_text(&member.name, into);
    match member.address.ip() {
        IpAddr::V4(ip) => {
            into.push(4);
            into.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            into.push(6);
            into.extend_from_slice(&ip.octets());
        }
    }
    into.extend_from_slice(&member.address.port().to_be_bytes());
    put_text(member.zone.as_deref().unwrap_or(""), into);
    put_text(if member.host == member.name { "" } else { &member.host }, into);
    into.extend_from_slice(&member.start.0);
    into.extend_from_slice(&id.generation().to_be_bytes());
    into.push(member.version);
}

pub(crate) fn put_state(state: &foca::Member<Id>, into: &mut Vec<u8>) {
    put_id(state.id(), into);
    into.push(match state.state() {
        State::Alive => 0,
        State::Suspect => 1,
        State::Down => 2,
    });
    into.extend_from_slice(&state.incarnation().to_be_bytes());
}

/// Returns a message of foca's kind `Gossip` from `own`, with one state, to the member whose state it is.
pub(crate) fn gossip_to_subject(own: &Id, state: &foca::Member<Id>) -> Vec<u8> {
    let mut bytes = message_to(own, state.id(), &Message::Gossip);
    bytes.extend_from_slice(&1_u16.to_be_bytes());
    put_state(state, &mut bytes);
    bytes
}

/// Returns a message of foca's kind `TurnUndead`: the receiver counts as down here, and joins again if it lives.
pub(crate) fn turn_undead(own: &Id, to: &Id) -> Vec<u8> {
    message_to(own, to, &Message::TurnUndead)
}

fn message_to(own: &Id, to: &Id, message: &Message<Id>) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_id(own, &mut bytes);
    // The lowest incarnation: says that the sender lives, and no more.
    bytes.extend_from_slice(&0_u16.to_be_bytes());
    put_id(to, &mut bytes);
    put_message(message, &mut bytes);
    bytes
}

fn put_message(message: &Message<Id>, into: &mut Vec<u8>) {
    let (code, number, id) = match message {
        Message::Ping(number) => (0, Some(number), None),
        Message::Ack(number) => (1, Some(number), None),
        Message::PingReq { target, probe_number } => (2, Some(probe_number), Some(target)),
        Message::IndirectPing { origin, probe_number } => (3, Some(probe_number), Some(origin)),
        Message::IndirectAck { target, probe_number } => (4, Some(probe_number), Some(target)),
        Message::ForwardedAck { origin, probe_number } => (5, Some(probe_number), Some(origin)),
        Message::Announce => (6, None, None),
        Message::Feed => (7, None, None),
        Message::Gossip => (8, None, None),
        Message::Broadcast => (9, None, None),
        Message::TurnUndead => (TURN_UNDEAD, None, None),
    };
    into.push(code);
    into.extend(number);
    if let Some(id) = id {
        put_id(id, into);
    }
}

/// foca's codec. Members that are heard of again share one allocation.
pub(crate) struct Codec {
    own: Id,
    /// The newest identity of each name.
    known: BTreeMap<Arc<str>, Id>,
    scratch: Vec<u8>,
}

impl Codec {
    pub(crate) fn new(own: Id) -> Codec {
        Codec { own, known: BTreeMap::new(), scratch: Vec::new() }
    }

    /// Returns the identity, and remembers it if it is the newest of its name.
    pub(crate) fn remember(&mut self, raw: RawId<'_>) -> Result<Id, Malformed> {
        if raw.name.is_empty() {
            return Err(Malformed);
        }
        if let Some(known) = self.known.get(raw.name) {
            if raw.is(known) {
                return Ok(known.clone());
            }
            let id = raw.to_id();
            if id.rank() > known.rank() {
                self.known.insert(id.member().name.clone(), id.clone());
            }
            return Ok(id);
        }
        if self.known.len() >= MEMBERS_MAX {
            self.known.retain(|_, id| !id.is_unused());
            if self.known.len() >= MEMBERS_MAX {
                return Err(Malformed);
            }
        }
        let id = raw.to_id();
        self.known.insert(id.member().name.clone(), id.clone());
        Ok(id)
    }

    /// Returns the identity without remembering its name, for one that is only mentioned.
    fn mentioned(&self, raw: RawId<'_>) -> Result<Id, Malformed> {
        if raw.is(&self.own) {
            return Ok(self.own.clone());
        }
        match self.known.get(raw.name) {
            Some(known) if raw.is(known) => Ok(known.clone()),
            _ if raw.name.is_empty() => Err(Malformed),
            _ => Ok(raw.to_id()),
        }
    }

    fn message(&self, reader: &mut Reader<'_>) -> Result<Message<Id>, Malformed> {
        let code = reader.byte()?;
        let probe_number = if code < 6 { reader.byte()? } else { 0 };
        Ok(match code {
            0 => Message::Ping(probe_number),
            1 => Message::Ack(probe_number),
            2 => Message::PingReq { target: self.mentioned(reader.id()?)?, probe_number },
            3 => Message::IndirectPing { origin: self.mentioned(reader.id()?)?, probe_number },
            4 => Message::IndirectAck { target: self.mentioned(reader.id()?)?, probe_number },
            5 => Message::ForwardedAck { origin: self.mentioned(reader.id()?)?, probe_number },
            6 => Message::Announce,
            7 => Message::Feed,
            8 => Message::Gossip,
            9 => Message::Broadcast,
            TURN_UNDEAD => Message::TurnUndead,
            _ => return Err(Malformed),
        })
    }

    fn read_header(&mut self, reader: &mut Reader<'_>) -> Result<Header<Id>, Malformed> {
        let src = self.remember(reader.id()?)?;
        let src_incarnation = u16::from_be_bytes(reader.array()?);
        let dst = reader.id()?;
        // Addressed to the member at an address, which is this one.
        let dst = if dst.name.is_empty() { self.own.clone() } else { self.mentioned(dst)? };
        Ok(Header { src, src_incarnation, dst, message: self.message(reader)? })
    }

    /// Reads a member with its state.
    pub(crate) fn read_member(
        &mut self,
        reader: &mut Reader<'_>,
    ) -> Result<foca::Member<Id>, Malformed> {
        let id = self.remember(reader.id()?)?;
        let (state, incarnation) = reader.state()?;
        Ok(foca::Member::new(id, incarnation, state))
    }

    fn flush(&mut self, mut buf: impl BufMut) -> Result<(), Malformed> {
        if buf.remaining_mut() < self.scratch.len() {
            return Err(Malformed);
        }
        buf.put_slice(&self.scratch);
        Ok(())
    }
}

/// Reads from a buffer's contiguous bytes and advances it by what was read.
fn advance<T>(
    mut buf: impl Buf,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    let mut reader = Reader(buf.chunk());
    let value = read(&mut reader)?;
    let left = reader.0.len();
    buf.advance(buf.chunk().len() - left);
    Ok(value)
}

impl foca::Codec<Id> for Codec {
    type Error = Malformed;

    fn encode_header(&mut self, header: &Header<Id>, buf: impl BufMut) -> Result<(), Malformed> {
        self.scratch.clear();
        put_id(&header.src, &mut self.scratch);
        self.scratch.extend_from_slice(&header.src_incarnation.to_be_bytes());
        put_id(&header.dst, &mut self.scratch);
        put_message(&header.message, &mut self.scratch);
        self.flush(buf)
    }

    fn decode_header(&mut self, buf: impl Buf) -> Result<Header<Id>, Malformed> {
        advance(buf, |reader| self.read_header(reader))
    }

    fn encode_member(
        &mut self,
        member: &foca::Member<Id>,
        buf: impl BufMut,
    ) -> Result<(), Malformed> {
        self.scratch.clear();
        put_state(member, &mut self.scratch);
        self.flush(buf)
    }

    fn decode_member(&mut self, buf: impl Buf) -> Result<foca::Member<Id>, Malformed> {
        advance(buf, |reader| self.read_member(reader))
    }
}
