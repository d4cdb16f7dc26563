//! An HTTP/2 connection to a server, shared by the requests on it.

use std::cell::Cell;

use tokio::sync::OwnedSemaphorePermit;
use transport::http2::Http2Client;

/// An HTTP/2 connection as its streams share it.
pub(crate) struct Carrier {
    pub(crate) client: Http2Client,
    /// One of its streams has been counted for the connection's end.
    judged: Cell<bool>,
    /// Set if it carries one request only; held until that request is over.
    private: Option<OwnedSemaphorePermit>,
}

impl Carrier {
    /// `private`: opened for one request only.
    pub(crate) fn new(client: Http2Client, private: Option<OwnedSemaphorePermit>) -> Carrier {
        Carrier { client, judged: Cell::new(false), private }
    }

    /// Returns whether it is alive and accepts further requests.
    pub(crate) fn is_open(&self) -> bool {
        self.client.is_open()
    }

    /// Returns the number of requests in progress on it.
    pub(crate) fn streams(&self) -> usize {
        self.client.streams()
    }

    /// Returns whether it carries only the request that it was opened for.
    pub(crate) fn is_private(&self) -> bool {
        self.private.is_some()
    }

    /// Returns whether its end has been counted.
    pub(crate) fn is_judged(&self) -> bool {
        self.judged.get()
    }

    /// Marks its end as counted, for all of its streams.
    pub(crate) fn judge(&self) {
        self.judged.set(true);
    }
}
