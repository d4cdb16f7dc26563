//! Description of an exchange in progress: a few stores per request, two of them pointers.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use model::{Address, ListenerId, Moment, ServiceId};
use wire::http1::RequestHead;

use crate::head::RequestId;
use crate::plane::Plane;

/// An exchange in progress.
pub(crate) struct Flight {
    pub(crate) since: Moment,
    pub(crate) id: RequestId,
    pub(crate) client: SocketAddr,
    /// Whether the client's own request ID is trusted.
    pub(crate) trusted: bool,
    pub(crate) plane: Rc<Plane>,
    pub(crate) listener: ListenerId,
    /// `None` in TCP mode.
    pub(crate) request: Option<Rc<RequestHead>>,
    pub(crate) service: Option<ServiceId>,
    /// The server of the current attempt.
    pub(crate) server: Option<Address>,
    pub(crate) attempts: u32,
}

impl Flight {
    pub(crate) fn service(&self) -> Option<&Arc<str>> {
        self.service.map(|id| &self.plane.published.snapshot.service(id).name)
    }
}
