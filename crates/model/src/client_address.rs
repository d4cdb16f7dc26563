//! Where the client's address is read when a proxy is in front of the listener.

/// How the client's address is found in a request of a trusted peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    /// The only field that is read.
    pub field: AddressField,
    /// The client is the address at this position from the right, beginning with 1. `None`: it is the
    /// first from the right that is not in a trusted network.
    pub hops: Option<u32>,
}

impl Default for ClientAddress {
    fn default() -> ClientAddress {
        ClientAddress { field: AddressField::XForwardedFor, hops: None }
    }
}

/// A field in which proxies state addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressField {
    /// `X-Forwarded-For`: a list, to which each proxy appends its peer.
    XForwardedFor,
    /// `Forwarded` (RFC 7239): the same with parameters.
    Forwarded,
    /// Another field, which holds the client's address alone, such as `CF-Connecting-IP`.
    Single(Box<str>),
}

impl AddressField {
    /// Returns the field's name.
    pub fn name(&self) -> &str {
        match self {
            AddressField::XForwardedFor => "X-Forwarded-For",
            AddressField::Forwarded => "Forwarded",
            AddressField::Single(name) => name,
        }
    }
}

crate::words! {
    /// What the field of a trusted peer said about the client's address.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum AddressFound {
        /// An address.
        Found = "found",
        /// Addresses in trusted networks only: the first is taken.
        OnlyTrusted = "only_trusted",
        /// The field is absent or empty.
        Missing = "missing",
        /// An entry is not an address: the trusted address to the right of it is taken, or with
        /// `hops` the peer's.
        Invalid = "invalid",
        /// Fewer addresses than `hops`.
        TooFew = "too_few",
    }
}

impl AddressFound {
    /// Returns whether the address is the client's. Otherwise it is a proxy's, behind which any client
    /// may be: conditions on the client do not hold then. A request without the field comes from the
    /// proxy itself, such as its health checks.
    pub fn is_known(self) -> bool {
        match self {
            AddressFound::Found | AddressFound::OnlyTrusted | AddressFound::Missing => true,
            AddressFound::Invalid | AddressFound::TooFew => false,
        }
    }
}
