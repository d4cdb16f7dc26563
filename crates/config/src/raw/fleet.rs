//! Reads `[fleet]`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use model::{Fleet, ServerTarget, Text};
use toml::de::DeValue;

use super::discover::RawDiscover;
use super::paths::file_path;
use super::table::{Table, is_empty_list};
use super::{RawCertificate, discover, net, tls};
use crate::diagnostic::{At, Diagnostic, Span, Wrong, quote};

const MEMBERS_MAX: usize = 64;
const KEYS_MAX: usize = 4;
/// 128 bits as hexadecimal digits.
const KEY_BYTES_MIN: usize = 32;
const KEY_BYTES_MAX: usize = 4096;

/// `[fleet]`.
#[derive(Debug)]
pub(crate) struct RawFleet {
    /// Without `discover` and `tls`. `None` after a mistake, which is reported.
    pub(crate) fleet: Option<Fleet>,
    pub(crate) discover: Option<RawDiscover>,
    pub(crate) tls: Option<RawFleetTls>,
}

/// `tls`. Unreadable values have been reported.
#[derive(Debug)]
pub(crate) struct RawFleetTls {
    pub(crate) certificate: Option<RawCertificate>,
    pub(crate) ca: Option<At<PathBuf>>,
    pub(crate) name: Option<Arc<str>>,
}

pub(super) fn read(mut table: Table<'_>) -> RawFleet {
    let address = table.text("address", listen_address);
    let advertise = advertise(&mut table, address.as_ref());
    let name = table.text("name", member_text).map(|at| at.value);
    let host = table.text("host", member_text).map(|at| at.value);
    let members = members(&mut table);
    let discover = table.table("discover").map(|below| {
        no_limits(&below);
        discover::read(below)
    });
    joins_none(&table);
    let keys = keys(&mut table);
    let probers = table.integer("probers").value;
    let tls = table.table("tls").map(tls_of_members);
    table.finish();
    let fleet = address.zip(advertise).map(|(address, advertise)| Fleet {
        address: address.value,
        advertise,
        name,
        host,
        members,
        discover: None,
        keys,
        probers,
        tls: None,
    });
    RawFleet { fleet, discover, tls }
}

fn tls_of_members(mut table: Table<'_>) -> RawFleetTls {
    let tls = RawFleetTls {
        certificate: table.table("certificate").map(tls::certificate),
        ca: table.text("ca", file_path),
        name: table.text("name", net::host_name).map(|at| at.value.into()),
    };
    table.finish();
    tls
}

/// Returns the address that other members send to; `None` after a mistake, which is reported.
fn advertise(table: &mut Table<'_>, address: Option<&At<SocketAddr>>) -> Option<SocketAddr> {
    let port = address.map(|address| address.value.port());
    let own = table.text("advertise", |text| advertised_address(text, port));
    if table.has_or_means("advertise") {
        return own.map(|at| at.value);
    }
    let At { value: address, span } = address?;
    if !address.ip().is_unspecified() {
        return Some(*address);
    }
    let title = "[fleet] needs `advertise`: `address` is every address of this machine";
    let error = Diagnostic::error(title, span.clone(), "where do other members send?");
    let port = address.port();
    table.problems.report_absence(error.help(format!(
        "write advertise = \"10.0.0.5:{port}\" with an address of this machine, or advertise = \"${{NODE_IP}}:{port}\" with an environment variable"
    )));
    None
}

fn members(table: &mut Table<'_>) -> Vec<ServerTarget> {
    let members = table.texts("members", net::network_target).unwrap_or_default();
    if members.len() > MEMBERS_MAX {
        let title = format!("`members` has at most {MEMBERS_MAX} entries");
        let error = Diagnostic::error(title, table.span_of("members"), "too many");
        table.problems.report(
            error.help("some of them suffice, since they know the others; or write one name that stands for all addresses"),
        );
    }
    members.into_iter().map(|at| at.value).collect()
}

/// Warns about a concurrency limit, which members do not have. With the other sources it is reported in any case.
fn no_limits(discover: &Table<'_>) {
    let has_limits = ["consul", "nomad", "etcd"].iter().any(|key| discover.key_span(key).is_some());
    if let Some(span) = discover.key_span("in_flight").filter(|_| has_limits) {
        let title = "`in_flight` means nothing for members of a fleet";
        let warning = Diagnostic::warning(title, span, "has no effect");
        discover.problems.report(warning.help("remove `in_flight`"));
    }
}

/// Warns if neither `members` nor `discover` is there, unless the list is empty on purpose.
fn joins_none(table: &Table<'_>) {
    if ["members", "discover"].iter().any(|key| table.has_or_means(key)) {
        return;
    }
    let title = "[fleet] has no `members` and no `discover`";
    let label = "it joins no other member; others may join it";
    table.problems.report_absence(
        Diagnostic::warning(title, table.span.clone(), label)
            .help("write members = [\"10.0.0.6:7946\"], or members = [] if others list this one"),
    );
}

/// Reads the secrets. What is reported about them does not quote them.
fn keys(table: &mut Table<'_>) -> Vec<Text> {
    let example = "write keys = [\"${file:fleet.key}\"]";
    if let Some(DeValue::String(_)) = table.peek("keys") {
        let error =
            Diagnostic::error("`keys` must be a list", table.span_of("keys"), "this is text");
        table.problems.report_unquoted(error.help(example));
        return Vec::new();
    }
    let written = table.texts("keys", |text| Ok(text.to_owned())).unwrap_or_default();
    let label = match written.len() {
        0 if is_empty_list(table.peek("keys")) => Some("no key"),
        0..=KEYS_MAX => None,
        _ => Some("too many"),
    };
    if let Some(label) = label {
        let title = format!("`keys` has one to {KEYS_MAX} secrets");
        let error = Diagnostic::error(title, table.span_of("keys"), label);
        table.problems.report_unquoted(error.help(example));
    }
    let trimmed: Vec<_> = written.iter().map(|at| at.value.trim_ascii()).collect();
    for (index, (At { span, .. }, key)) in written.iter().zip(&trimmed).enumerate() {
        if let Some(error) = wrong_length(key, span.clone()) {
            table.problems.report_unquoted(error);
        } else if let Some(first) = trimmed.iter().take(index).position(|other| other == key)
            && let Some(first) = written.get(first)
        {
            let error = Diagnostic::error("two of `keys` are equal", span.clone(), "again here");
            table.problems.report_unquoted(error.other(first.span.clone(), "first here"));
        }
    }
    trimmed.into_iter().map(|key| Text::secret(key.to_owned())).collect()
}

/// Returns what is wrong with the length of a key, without white space around it.
fn wrong_length(key: &str, span: Span) -> Option<Diagnostic> {
    if key.len() < KEY_BYTES_MIN {
        let title = format!("a key has at least {KEY_BYTES_MIN} bytes");
        let help = "write a random one into a file, `openssl rand -base64 48 > fleet.key`, and keys = [\"${file:fleet.key}\"]";
        return Some(Diagnostic::error(title, span, "too short").help(help));
    }
    let title = format!("a key has at most {KEY_BYTES_MAX} bytes");
    (key.len() > KEY_BYTES_MAX).then(|| Diagnostic::error(title, span, "too long"))
}

/// Parses an address and a port to listen on.
fn listen_address(text: &str) -> Result<SocketAddr, Wrong> {
    let address = net::ip_address(text)?;
    match address {
        _ if address.port() == 0 => Err(Wrong::new("other members cannot know port 0")
            .help(format!("write \"{}\"", SocketAddr::new(address.ip(), EXAMPLE_PORT)))),
        _ if address.ip().is_multicast() => Err(Wrong::new("a multicast address")
            .help("members send to each other's own addresses: write one of this machine")),
        _ => Ok(address),
    }
}

/// Parses an address that other members can send to. Without a port, it has this one.
fn advertised_address(text: &str, port: Option<u16>) -> Result<SocketAddr, Wrong> {
    let address = match (text.parse::<IpAddr>(), port) {
        (Ok(ip), Some(port)) => SocketAddr::new(ip, port),
        _ => listen_address(text)?,
    };
    if address.ip().is_unspecified() {
        return Err(Wrong::new("other members cannot send to this address")
            .help("write the address of this machine that they can reach"));
    }
    Ok(address)
}

/// The port of other programs that form clusters in this way.
const EXAMPLE_PORT: u16 = 7946;

/// Parses the name of a member, or of its machine. Both are parts of datagrams and of lines in logs.
fn member_text(text: &str) -> Result<Arc<str>, Wrong> {
    const BYTES_MAX: usize = 64;
    if text.is_empty() {
        return Err(Wrong::new("a name is missing").help("leave it out to use the host name"));
    }
    if text.len() > BYTES_MAX {
        return Err(Wrong::new(format!("more than {BYTES_MAX} bytes")));
    }
    match text.chars().find(|c| c.is_control() || c.is_whitespace()) {
        Some(c) => Err(Wrong::new(format!("{} may not stand in it", quote(&c.to_string())))),
        None => Ok(text.into()),
    }
}
