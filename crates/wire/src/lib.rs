//! Protocol parsers and encoders, bounded and without I/O.
//!
//! Nothing here reads a socket or a clock, decides where a request goes or knows a configuration.
//! Input is a slice, output is a value or bytes appended to the caller's buffer.

pub mod date;
pub mod grpc;
pub mod http1;
pub mod pattern;
pub mod proxy_protocol;
pub mod tls;
