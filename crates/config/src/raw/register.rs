//! Reads `register` of `[[listener]]`.

use std::net::IpAddr;
use std::sync::Arc;

use model::{Address, Registration};

use super::discover::registry_name;
use super::net;
use super::table::Table;
use crate::diagnostic::{At, Diagnostic, Span, Wrong, quote};

/// `register` of `[[listener]]`.
#[derive(Debug)]
pub(crate) struct RawRegister {
    pub(crate) span: Span,
    /// `None`: it could not be read; a mistake is reported.
    pub(crate) registration: Option<Arc<Registration>>,
}

/// Reads `register` of the listener `table`, which listens on `address`.
pub(super) fn read(table: &mut Table<'_>, address: Option<&At<Address>>) -> Option<RawRegister> {
    let mut below = table.table("register")?;
    let span = below.span.clone();
    let service = below.text("consul", entry_name);
    let id = below.text("id", entry_name);
    let tags = below.texts("tags", registry_name).unwrap_or_default();
    let own = below.text("address", client_address);
    let port = below.integer_if("port").map(|at: At<u16>| at.value);
    below.finish();
    let listens = match address.map(|at| at.value) {
        Some(Address::Ip(listens)) => Some(listens),
        Some(Address::Unix(_)) => {
            let error = Diagnostic::error(
                "a listener on a Unix socket cannot be registered",
                span.clone(),
                "it has no port",
            );
            table.problems.report(error.help("remove `register`, or listen on an IP address"));
            None
        }
        None => None,
    };
    let port = listens.and_then(|listens| {
        let known = port.or(Some(listens.port()).filter(|port| *port != 0));
        if known.is_none() {
            let title = "`register` needs `port`: the listener's port is chosen at startup";
            let error = Diagnostic::error(title, span.clone(), "no `port`");
            let help = "write port = 8080 in `register`, or a fixed port in `address`";
            table.problems.report(error.help(help));
        }
        known
    });
    let of_listener =
        listens.map(|listens| listens.ip()).filter(|ip| !ip.to_canonical().is_unspecified());
    let registration = service.zip(port).map(|(service, port)| {
        Arc::new(Registration {
            id: match id {
                Some(id) => (*id.value).into(),
                None => Registration::default_id(&service.value, port),
            },
            service: service.value,
            tags: tags.into_iter().map(|at| (*at.value).into()).collect(),
            address: own.map(|at| at.value).or_else(|| Some(of_listener?.to_string().into())),
            port,
        })
    });
    Some(RawRegister { span, registration })
}

/// Parses the name of a service or the ID of an entry. Both are parts of paths of Consul's API, so they have only
/// characters that are the same there, and those of a name in DNS queries to Consul: a label of 63 bytes.
fn entry_name(text: &str) -> Result<Arc<str>, Wrong> {
    const BYTES_MAX: usize = 63;
    if text.is_empty() {
        return Err(Wrong::new("a name is missing"));
    }
    if text.len() > BYTES_MAX {
        return Err(Wrong::new(format!("more than {BYTES_MAX} characters")));
    }
    let help = "a name here has letters, digits, and - _ .";
    match text.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.')) {
        None if matches!(text, "." | "..") => {
            Err(Wrong::new("a name of dots is not allowed").help(help))
        }
        None => Ok(text.into()),
        Some(c) => Err(Wrong::new(format!("{} is not allowed", quote(&c.to_string()))).help(help)),
    }
}

/// Parses an address that clients connect to: an IP address or a host name, without a port.
fn client_address(text: &str) -> Result<Box<str>, Wrong> {
    match text.parse::<IpAddr>() {
        Ok(ip) if ip.to_canonical().is_unspecified() => {
            let help =
                "write the address of this machine; without `address`, Consul uses its node's";
            Err(Wrong::new("clients cannot connect to this address").help(help))
        }
        Ok(ip) => Ok(ip.to_string().into()),
        Err(_) => net::host_name(text).map(Into::into),
    }
}
