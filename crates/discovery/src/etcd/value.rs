//! The server that the value of a key describes, in one of three forms:
//!
//! - A JSON object with the keys of a row: `{"address":"10.0.0.1:8080","zone":"a","weight":2}`.
//! - An address as text: `10.0.0.1:8080`.
//! - What etcd's own Go package `naming/endpoints` writes: `{"Op":0,"Addr":"10.0.0.1:8080","Metadata":…}`. Only
//!   the address counts.

use config::{ServerTexts, listed_server};
use model::ServerSpec;

use crate::address::with_port;
use crate::rows::{Fields, Value};

/// The maximum length of a value.
pub(super) const VALUE_BYTES_MAX: usize = 64 << 10;

/// The key of the address in values of `naming/endpoints`.
const ENDPOINT_ADDRESS: &str = "Addr";

/// Returns the server. `port` replaces its port.
///
/// # Errors
/// The value has none of the three forms, is longer than [`VALUE_BYTES_MAX`], or is not valid. The text may not
/// be bounded.
pub(super) fn server(bytes: &[u8], port: Option<u16>) -> Result<ServerSpec, String> {
    if bytes.len() > VALUE_BYTES_MAX {
        return Err(format!("the value is longer than {VALUE_BYTES_MAX} bytes"));
    }
    // `etcdctl put` reads a value with the end of its line.
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return Err("the value is empty".to_owned());
    }
    if !bytes.starts_with(b"{") {
        let text = std::str::from_utf8(bytes).map_err(|_| "the value is not UTF-8")?;
        return of_address(text, port);
    }
    let fields: Fields =
        serde_json::from_slice(bytes).map_err(|error| format!("the value: {error}"))?;
    match fields.value(ENDPOINT_ADDRESS) {
        Some(Value::String(address)) => of_address(address, port),
        Some(_) => Err(format!("{ENDPOINT_ADDRESS} is not a string")),
        None => fields.server(port),
    }
}

fn of_address(address: &str, port: Option<u16>) -> Result<ServerSpec, String> {
    listed_server(&ServerTexts {
        address: &with_port(address, port),
        zone: None,
        weight: None,
        backup: None,
        in_flight_max: None,
        version: None,
    })
}
