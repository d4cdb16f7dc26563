//! An HTTP/2 connection to a server, shared by the requests on it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use model::Moment;
use tokio::sync::OwnedSemaphorePermit;
use transport::http2::Http2Client;
use wire::http1::RequestHead;

/// An HTTP/2 connection as its streams share it.
pub(crate) struct Carrier {
    pub(crate) client: Http2Client,
    /// One of its streams has been counted for the connection's end.
    judged: Cell<bool>,
    /// The server refuses streams: until then, further requests use another connection.
    refuses_until: Cell<Moment>,
    /// Set if it carries one request only; held until that request is over.
    private: Option<OwnedSemaphorePermit>,
    long_fields: Rc<LongFields>,
}

/// Whether requests with long fields share connections to a server with other requests. Some servers
/// end the whole connection because of one, at the expense of the others.
#[derive(Default)]
pub(crate) struct LongFields {
    /// Until then, they share connections with each other only.
    apart_until: Cell<Moment>,
}

/// A longer field may be too long for a server: nginx accepts 8 KiB by default.
const FIELD_SHARED_MAX_BYTES: usize = 4 * 1024;
/// How long a connection is left alone whose server has refused a stream.
const REFUSES_FOR: Duration = Duration::from_secs(1);
/// How long long fields are kept apart after a shared connection has ended with one.
const APART_FOR: Duration = Duration::from_secs(600);

impl LongFields {
    /// Returns whether this request must not share a connection with ordinary ones.
    pub(crate) fn keep_apart(&self, request: &RequestHead, now: Moment) -> bool {
        self.is_active(now) && has_long_field(request)
    }

    /// Returns whether any request would have to.
    pub(crate) fn is_active(&self, now: Moment) -> bool {
        now < self.apart_until.get()
    }
}

fn has_long_field(request: &RequestHead) -> bool {
    let is_long = |length: usize| length > FIELD_SHARED_MAX_BYTES;
    is_long(request.target().len()) || request.fields().any(|field| is_long(field.value.len()))
}

impl Carrier {
    /// `private`: opened for one request only.
    pub(crate) fn new(
        client: Http2Client,
        private: Option<OwnedSemaphorePermit>,
        long_fields: Rc<LongFields>,
    ) -> Carrier {
        let refuses_until = Cell::default();
        Carrier { client, judged: Cell::new(false), refuses_until, private, long_fields }
    }

    /// Returns whether the server has just refused a stream although its limit allows more.
    pub(crate) fn refuses(&self, now: Moment) -> bool {
        now < self.refuses_until.get()
    }

    /// Notes that the server has refused a stream.
    pub(crate) fn refused(&self, now: Moment) {
        self.refuses_until.set(now + REFUSES_FOR);
    }

    /// Notes that a request has failed that it carried, among others. If it has ended, and not only
    /// announced that it will, a long field may be the cause.
    pub(crate) fn failed_with(&self, request: &RequestHead, now: Moment) {
        if self.client.has_ended() && has_long_field(request) {
            self.long_fields.apart_until.set(now + APART_FOR);
        }
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
