//! The parts of gRPC that a health check needs (its `doc/PROTOCOL-HTTP2.md` and
//! `doc/health-checking.md`): one small message each way, and the status that ends a call.
//!
//! The two messages have one field each, so their few bytes of protobuf are written and parsed by
//! hand.

mod health;
mod status;

pub use health::{HealthError, SERVICE_MAX_BYTES, ServingStatus, put_check_request, read_answer};
pub use status::{parse_status, status_name};

/// The path of the health check call.
pub const HEALTH_CHECK_PATH: &str = "/grpc.health.v1.Health/Check";

/// The media type of its messages.
pub const CONTENT_TYPE: &str = "application/grpc";

/// Returns whether a Content-Type is gRPC's: `application/grpc`, `application/grpc+proto`, with or
/// without parameters, but not `application/grpc-web`.
pub fn is_content_type(value: &[u8]) -> bool {
    let (start, rest) = value.split_at(value.len().min(CONTENT_TYPE.len()));
    start.eq_ignore_ascii_case(CONTENT_TYPE.as_bytes())
        && rest.first().is_none_or(|next| matches!(next, b'+' | b';' | b' ' | b'\t'))
}

/// The status of a call that the server does not implement.
pub const UNIMPLEMENTED: u32 = 12;

/// The status of a health check for a service that the server does not know.
pub const NOT_FOUND: u32 = 5;
