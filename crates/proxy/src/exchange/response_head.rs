//! Reads a response head from a server.

use std::task::{Context, Poll, ready};

use model::Cause;
use wire::http1::{self, HeadLimits, Parsed, ResponseError, ResponseHead};

use crate::buffer::LARGE_BYTES;
use crate::failure::Reason;
use crate::pump::PumpError;
use crate::server_connection::ServerConnection;

/// The largest response head accepted from a server.
const RESPONSE_HEAD_LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: LARGE_BYTES, target_max_bytes: 0, fields_max: 128 };

/// Why there is no response head.
pub(super) enum NoHead {
    /// The connection ended or failed before the head was complete.
    Gone(PumpError),
    /// The bytes received are not an acceptable head.
    Refused(Reason),
}

/// Reads a response head into `head`. Ready when it is complete or cannot be completed.
pub(super) fn poll_read(
    cx: &mut Context<'_>,
    server: &mut ServerConnection,
    head: &mut ResponseHead,
) -> Poll<Result<(), NoHead>> {
    loop {
        if !server.buffer.is_empty() {
            match http1::parse_response(&server.buffer, &RESPONSE_HEAD_LIMITS, head) {
                Ok(Parsed::Complete { consumed }) => {
                    server.buffer.consume(consumed);
                    return Poll::Ready(Ok(()));
                }
                Ok(Parsed::Partial) if server.buffer.has_room() || server.buffer.grow() => {}
                Ok(Parsed::Partial) => {
                    let cause = Cause::HttpResponseHeadTooLarge;
                    return Poll::Ready(Err(NoHead::Refused(cause.into())));
                }
                Err(error) => {
                    let reason = Reason { cause: cause(error), detail: error.detail() };
                    return Poll::Ready(Err(NoHead::Refused(reason)));
                }
            }
        }
        let filled = if server.brought_bulk {
            server.buffer.poll_fill_head(&server.stream, cx)
        } else {
            server.buffer.poll_fill(&server.stream, cx)
        };
        let error = match ready!(filled) {
            Ok(count) if count > 0 => continue,
            Ok(_) => PumpError::Incomplete,
            Err(error) => PumpError::read(error),
        };
        return Poll::Ready(Err(NoHead::Gone(error)));
    }
}

/// Returns the cause for a rejected response head.
fn cause(error: ResponseError) -> Cause {
    match error {
        ResponseError::HeadTooLarge | ResponseError::TooManyFields => {
            Cause::HttpResponseHeadTooLarge
        }
        ResponseError::BadTransferEncoding => Cause::HttpResponseTransferCoding,
        _ => Cause::HttpProtocolError,
    }
}
