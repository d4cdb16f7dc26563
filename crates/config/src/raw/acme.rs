//! Reads `[acme]`, and the names of a certificate that is obtained by ACME.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use model::{AcmeChallenge, AcmeRenewal, HttpUrl};
use toml::de::DeValue;

use super::net;
use super::paths::{self, file_path};
use super::table::Table;
use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Span, Wrong, quote};

/// Maximum number of names in a certificate: Let's Encrypt's, and that of most others.
const NAMES_MAX: usize = 100;

/// `[acme]`.
#[derive(Debug)]
pub(crate) struct RawAcme {
    /// Of the table.
    pub(crate) span: Span,
    pub(crate) directory: Arc<str>,
    /// `None`: the system's.
    pub(crate) ca: Option<At<PathBuf>>,
    pub(crate) contacts: Vec<String>,
    pub(crate) external_account: Option<RawExternalAccount>,
    pub(crate) challenge: At<AcmeChallenge>,
    pub(crate) profile: Option<String>,
    pub(crate) renewal: AcmeRenewal,
    pub(crate) state_directory: Option<PathBuf>,
}

/// `external_account`. Unreadable values have been reported.
#[derive(Debug)]
pub(crate) struct RawExternalAccount {
    pub(crate) key_id: Option<String>,
    pub(crate) hmac_key_file: Option<At<PathBuf>>,
}

/// Reads `[acme]`.
pub(super) fn read(mut table: Table<'_>) -> RawAcme {
    let directory = table.text("directory", directory).map(|at| at.value.into());
    if !table.boolean("terms_agreed") && table.key_span("terms_agreed").is_some() {
        let title = "the authority's terms of service are not agreed to";
        let error = Diagnostic::error(title, table.span_of("terms_agreed"), "it issues nothing");
        table.problems.report(error.help("read them, and write terms_agreed = true"));
    }
    let raw = RawAcme {
        span: table.span.clone(),
        directory: directory.unwrap_or_else(|| defaults::ACME_DIRECTORY.into()),
        ca: table.text("ca", file_path),
        contacts: contacts(&mut table),
        external_account: table.table("external_account").map(external_account),
        challenge: table.word_at("challenge", AcmeChallenge::Http01),
        profile: table.text("profile", word).map(|at| at.value),
        renewal: table.table("renewal").map_or_else(AcmeRenewal::default, renewal),
        state_directory: table.text("state_directory", paths::absolute).map(|at| at.value),
    };
    table.finish();
    raw
}

/// Reads `acme` of a certificate; the list is empty after a mistake. `None`: nothing like it is there.
pub(super) fn names(table: &mut Table<'_>) -> Option<At<Vec<String>>> {
    let names = table.texts("acme", acme_name);
    if table.means("acme") {
        return Some(At { value: Vec::new(), span: table.span.clone() });
    }
    let span = table.key_span("acme")?;
    let mut names = names.unwrap_or_default();
    let given = names.len();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.value.clone()));
    if names.len() < given {
        let warning =
            Diagnostic::warning("one name is given twice", span.clone(), "once is enough");
        table.problems.report(warning.help("leave the second one out"));
    }
    let is_empty = |value: &DeValue<'_>| matches!(value, DeValue::Array(all) if all.is_empty());
    if table.peek("acme").is_some_and(is_empty) {
        let error = Diagnostic::error("a certificate needs a name", span.clone(), "empty");
        table.problems.report_absence(error.help("write acme = [\"www.example.com\"]"));
    }
    if names.len() > NAMES_MAX {
        let title = format!("{} names in one certificate", names.len());
        let label = format!("at most {NAMES_MAX} are issued");
        table.problems.report(Diagnostic::error(title, span.clone(), label).help(
            "write several: certificates = [{ acme = [\"a.example.com\"] }, { acme = [\"b.example.com\"] }]",
        ));
        names.clear();
    }
    for key in ["chain", "key", "ocsp"] {
        if let Some(file) = table.key_span(key) {
            let title = format!("`acme` and `{key}` exclude each other");
            table.problems.report(
                Diagnostic::error(title, file, "not used")
                    .other(span.clone(), "obtained by ACME, with its key")
                    .help(format!("leave `{key}` out, or `acme`")),
            );
        }
    }
    Some(At { value: names.into_iter().map(|at| at.value).collect(), span })
}

/// Parses a name that an authority can validate by HTTP-01 or TLS-ALPN-01.
fn acme_name(text: &str) -> Result<String, Wrong> {
    if text.contains('*') {
        return Err(Wrong::new("a wildcard needs a challenge over DNS, which Weir cannot answer")
            .help("name every host, or obtain it with another client and write chain and key"));
    }
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if inner.parse::<IpAddr>().is_ok() {
        return Err(Wrong::new("an IP address, not a name")
            .help("obtain its certificate with another client, and write chain and key"));
    }
    let name = net::host(text)?;
    if !name.contains('.') {
        return Err(Wrong::new("no authority issues certificates for a name without a dot")
            .help("write the whole name, as in \"www.example.com\""));
    }
    Ok(name)
}

fn directory(text: &str) -> Result<String, Wrong> {
    let example = || format!("write it as {}", quote(defaults::ACME_DIRECTORY));
    match text.parse::<HttpUrl>() {
        Ok(url) if url.is_https() => Ok(text.to_owned()),
        Ok(_) => Err(Wrong::new("not an https URL").help(example())),
        Err(error) => Err(Wrong::new(error.to_string()).help(example())),
    }
}

fn contacts(table: &mut Table<'_>) -> Vec<String> {
    let contacts = table.texts("contacts", |text| {
        if let Some(address) = text.strip_prefix("mailto:") {
            return Err(Wrong::new("the address alone").help(format!("write {}", quote(address))));
        }
        let fits = |c: char| c.is_ascii_graphic() && !matches!(c, ',' | '?' | '"');
        match text.split_once('@') {
            Some((name, host))
                if !name.is_empty() && !host.is_empty() && text.chars().all(fits) =>
            {
                Ok(text.to_owned())
            }
            _ => Err(Wrong::new("not an e-mail address").help("write \"admin@example.com\"")),
        }
    });
    contacts.unwrap_or_default().into_iter().map(|at| at.value).collect()
}

fn external_account(mut table: Table<'_>) -> RawExternalAccount {
    let external = RawExternalAccount {
        key_id: table.text("key_id", word).map(|at| at.value),
        hmac_key_file: table.text("hmac_key_file", file_path),
    };
    table.finish();
    external
}

fn renewal(mut table: Table<'_>) -> AcmeRenewal {
    let ari = table.boolean("ari");
    // Within its bounds, which are those of `AcmeRenewal`.
    let after_permille = (table.number("after").value * 1000.0).round() as u16;
    table.finish();
    AcmeRenewal { ari, after_permille }
}

fn word(text: &str) -> Result<String, Wrong> {
    match text {
        "" => Err(Wrong::new("empty")),
        _ if text.chars().any(char::is_control) => Err(Wrong::new("a control character")),
        _ => Ok(text.to_owned()),
    }
}
