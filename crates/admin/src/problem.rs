//! Error answers of the API: a status, a stable name, a sentence.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// An error answer.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    name: &'static str,
    message: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, name: &'static str, message: String) -> Problem {
        Problem { status, name, message }
    }

    pub(crate) fn not_found(name: &'static str, message: String) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, name, message)
    }

    /// What went wrong, as a sentence.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the answer to a change that a new process would not learn of.
    pub(crate) fn upgrading() -> Problem {
        let message = "nothing has changed: a new process is taking over and would not receive the \
                       change; repeat the request after the upgrade";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "upgrade_under_way", message.to_owned())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = admin_api::Problem { error: self.name.to_owned(), message: self.message };
        (self.status, Json(body)).into_response()
    }
}
