//! A connection of HTTP/2 to a server, as the requests on it know it.

use std::cell::Cell;

use tokio::sync::OwnedSemaphorePermit;
use transport::http2::Http2Client;

/// A connection, as its streams know it.
pub(crate) struct Carrier {
    pub(crate) client: Http2Client,
    /// One of its streams has been counted for the connection's end.
    judged: Cell<bool>,
    /// It carries one request only; held until that is over.
    private: Option<OwnedSemaphorePermit>,
}

impl Carrier {
    /// `private`: it is made for one request only.
    pub(crate) fn new(client: Http2Client, private: Option<OwnedSemaphorePermit>) -> Carrier {
        Carrier { client, judged: Cell::new(false), private }
    }

    /// Whether it lives and takes further requests.
    pub(crate) fn is_open(&self) -> bool {
        self.client.is_open()
    }

    /// Requests on it that are not over.
    pub(crate) fn streams(&self) -> usize {
        self.client.streams()
    }

    /// Whether it carries no other request than the one that it was made for.
    pub(crate) fn is_private(&self) -> bool {
        self.private.is_some()
    }

    /// Whether its end has been counted.
    pub(crate) fn is_judged(&self) -> bool {
        self.judged.get()
    }

    /// Its end has been counted, for all of its streams.
    pub(crate) fn judge(&self) {
        self.judged.set(true);
    }
}
