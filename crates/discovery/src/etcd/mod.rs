//! etcd: the keys of one prefix, each with a server as its value, by the JSON gateway of etcd's v3 API (etcd 3.4
//! and 3.5): `POST /v3/kv/range`, `/v3/watch` and `/v3/auth/authenticate`
//! (<https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway/>).
//!
//! The caller lists the keys ([`range_body`], [`Keys::listed`]), then watches from the next revision
//! ([`watch_body`]), splits the stream into [`Lines`], and passes each to [`Keys::on_message`].

mod keys;
mod lines;
mod message;
mod refusal;
mod request;
mod value;

pub use keys::{Keys, Reading, Step};
pub use lines::{LINE_BYTES_MAX, Lines};
pub use refusal::{needs_token, refusal};
pub use request::{credentials_body, range_body, token, watch_body};
