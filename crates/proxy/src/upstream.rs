//! Connections to servers: kept ones first, fresh ones otherwise.
//!
//! A worker keeps its own, by server address, newest on top, so that a burst's surplus ages and
//! closes. Idle connections are looked at every sweep; one whose server closed it is gone before a
//! request could be lost on it, but for those that close in the same moment.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use model::{Cause, Moment, ServiceTimeouts};
use transport::Stream;
use transport::dial::{self, DialOptions};

use crate::buffer::{Buffer, BufferPool};

/// How long the kernel keeps sending to a server that acknowledges nothing, beyond the response
/// timeout: a server whose host vanished is noticed by `TCP_USER_TIMEOUT`, not by keep-alives.
const USER_TIMEOUT_MIN: Duration = Duration::from_secs(5);

/// An open connection to a server, while an exchange uses it.
pub(crate) struct ServerConnection {
    pub(crate) stream: Stream,
    pub(crate) buffer: Buffer,
    /// Carried an exchange before this one.
    pub(crate) reused: bool,
}

struct Idle {
    stream: Stream,
    expires: Moment,
}

/// A worker's idle server connections.
#[derive(Default)]
pub(crate) struct Pool {
    idle: RefCell<HashMap<SocketAddr, Vec<Idle>>>,
}

impl Pool {
    /// A kept connection to `address` that is still open as far as the kernel has said, if any.
    pub(crate) fn take(
        &self,
        address: SocketAddr,
        buffers: &Rc<BufferPool>,
    ) -> Option<ServerConnection> {
        let mut idle = self.idle.borrow_mut();
        let kept = idle.get_mut(&address)?;
        while let Some(Idle { stream, .. }) = kept.pop() {
            // Bytes or a close on an idle connection: neither can belong to our next request.
            if !stream.closed_or_readable_hint() {
                let buffer = Buffer::new(Rc::clone(buffers));
                return Some(ServerConnection { stream, buffer, reused: true });
            }
        }
        None
    }

    /// Keeps a connection whose exchange is complete, until `expires`.
    pub(crate) fn give(
        &self,
        address: SocketAddr,
        connection: ServerConnection,
        expires: Moment,
        idle_max: u32,
    ) {
        // What follows a complete response was never asked for; such a server is not trusted to
        // frame the next response either.
        if !connection.buffer.is_empty() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let kept = idle.entry(address).or_default();
        if kept.len() < idle_max as usize {
            kept.push(Idle { stream: connection.stream, expires });
        }
    }

    /// Closes what its server closed or what is too old.
    pub(crate) fn sweep(&self, now: Moment) {
        self.idle.borrow_mut().retain(|_, kept| {
            kept.retain(|idle| now < idle.expires && !idle.stream.closed_or_readable_hint());
            !kept.is_empty()
        });
    }
}

/// Opens a fresh connection.
pub(crate) async fn dial(
    address: SocketAddr,
    timeouts: &ServiceTimeouts,
    buffers: &Rc<BufferPool>,
) -> Result<ServerConnection, Cause> {
    let options = DialOptions {
        connect_timeout: timeouts.connect,
        user_timeout: Some(timeouts.response.max(USER_TIMEOUT_MIN)),
    };
    match dial::dial(address, &options).await {
        Ok(stream) => {
            let buffer = Buffer::new(Rc::clone(buffers));
            Ok(ServerConnection { stream, buffer, reused: false })
        }
        Err(error) => Err(error.cause),
    }
}
