//! The kinds of messages that share the fleet's datagrams.

/// The payload of a datagram: a byte that states the kind, then the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// For [`crate::Membership::on_datagram`].
    Membership(&'a [u8]),
    /// Any other kind. A receiver ignores and counts the kinds that it does not know, so that members of two
    /// versions work together during an upgrade.
    Other {
        /// Which kind.
        kind: u8,
        /// The message.
        bytes: &'a [u8],
    },
}

impl<'a> Message<'a> {
    /// The kind of [`Message::Membership`].
    pub const MEMBERSHIP: u8 = 1;
    /// The kind of results of health checks: the receiver's start, then the form of `health::shared::wire`.
    pub const CHECKS: u8 = 2;

    /// The kind of slots lent: the receiver's start, then the form of `lend::wire`.
    pub const SLOTS: u8 = 3;
    /// The kind of states of servers for the whole fleet: the receiver's start, then the form of `orders::wire`.
    pub const ORDERS: u8 = 4;
    /// The kind of counts for rate limits: the receiver's start, then the form of `quota::wire`.
    pub const RATES: u8 = 5;
    /// The kind of which keys of session tickets a member has: the receiver's start, then the form of `keyring::wire`.
    pub const TICKETS: u8 = 6;
    /// The kind of which certificates a member has: the receiver's start, then the form of
    /// `keyring::certificates::wire`.
    pub const CERTIFICATES: u8 = 7;
    /// The kind of loads of services: the receiver's start, then the form of `scaling::wire`.
    pub const LOADS: u8 = 8;
    /// The kind of servers that are about to be removed: the receiver's start, then the form of
    /// `control::fleet::leaving`.
    pub const LEAVING: u8 = 9;

    /// Returns the message in a payload; `None` if the payload is empty.
    pub fn read(payload: &'a [u8]) -> Option<Message<'a>> {
        match payload.split_first()? {
            (&Message::MEMBERSHIP, bytes) => Some(Message::Membership(bytes)),
            (&kind, bytes) => Some(Message::Other { kind, bytes }),
        }
    }

    /// Appends the payload with this message to `into`.
    pub fn write(&self, into: &mut Vec<u8>) {
        let (kind, bytes) = match *self {
            Message::Membership(bytes) => (Message::MEMBERSHIP, bytes),
            Message::Other { kind, bytes } => (kind, bytes),
        };
        into.push(kind);
        into.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written_and_unknown_kinds_are_kept() {
        for message in [Message::Membership(b"ab"), Message::Other { kind: 200, bytes: b"" }] {
            let mut payload = Vec::new();
            message.write(&mut payload);
            assert_eq!(Message::read(&payload), Some(message));
        }
        assert_eq!(Message::read(&[]), None);
    }
}
