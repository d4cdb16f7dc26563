//! The probe of the gRPC health service: request and interpretation of the response (gRPC's
//! `doc/health-checking.md`).

use health::verdict::Failure;
use transport::client::{Connection, Request, Response};
use wire::grpc::{self, ServingStatus};

/// Returns the fields of the call, except for Host and User-Agent.
pub(super) fn fields() -> Vec<(String, String)> {
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    vec![field("content-type", grpc::CONTENT_TYPE), field("te", "trailers")]
}

/// Returns the call. `body` is what [`grpc::put_check_request`] wrote.
pub(super) fn request<'a>(
    host: &'a str,
    fields: &'a [(String, String)],
    body: &'a [u8],
) -> Request<'a> {
    Request { method: "POST", path: grpc::HEALTH_CHECK_PATH, host, fields, body }
}

/// Returns whether the server is serving, according to the last response over `connection`.
pub(super) fn judge(response: &Response, connection: &Connection) -> Result<(), Failure> {
    if response.status != 200 {
        return Err(Failure::Status(response.status));
    }
    // A call that fails at once has its status in the head (trailers-only).
    let status =
        connection.trailer("grpc-status").or_else(|| connection.head().field("grpc-status"));
    match status.map(grpc::parse_status) {
        None => return Err(Failure::Said("the answer is not one of gRPC")),
        Some(None) => return Err(Failure::Said("grpc-status is not a number")),
        Some(Some(0)) => {}
        Some(Some(code)) => return Err(Failure::Said(status_text(code))),
    }
    match grpc::read_answer(&response.body) {
        Ok(ServingStatus::Serving) => Ok(()),
        Ok(other) => Err(Failure::Said(other.name())),
        Err(error) => Err(Failure::Said(error.detail())),
    }
}

/// Returns what a failed call says about the server.
fn status_text(code: u32) -> &'static str {
    match code {
        grpc::UNIMPLEMENTED => "grpc-status 12 UNIMPLEMENTED: the server has no health service",
        grpc::NOT_FOUND => "grpc-status 5 NOT_FOUND: the server knows no service of that name",
        1 => "grpc-status 1 CANCELLED",
        2 => "grpc-status 2 UNKNOWN",
        3 => "grpc-status 3 INVALID_ARGUMENT",
        4 => "grpc-status 4 DEADLINE_EXCEEDED",
        6 => "grpc-status 6 ALREADY_EXISTS",
        7 => "grpc-status 7 PERMISSION_DENIED",
        8 => "grpc-status 8 RESOURCE_EXHAUSTED",
        9 => "grpc-status 9 FAILED_PRECONDITION",
        10 => "grpc-status 10 ABORTED",
        11 => "grpc-status 11 OUT_OF_RANGE",
        13 => "grpc-status 13 INTERNAL",
        14 => "grpc-status 14 UNAVAILABLE",
        15 => "grpc-status 15 DATA_LOSS",
        16 => "grpc-status 16 UNAUTHENTICATED",
        _ => "a grpc-status that is not one of gRPC's",
    }
}
