//! Reads `[authentication.NAME]`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use identity::Algorithm;
use model::{HttpUrl, IdentityField, IdentityValue, UrlError};

use super::table::Table;
use super::{http, name, net, paths};
use crate::diagnostic::{At, Diagnostic, Span, Wrong};

/// `[authentication.NAME]`.
#[derive(Debug)]
pub(crate) struct RawAuthentication {
    pub(crate) name: Arc<str>,
    /// Its heading.
    pub(crate) span: Span,
    pub(crate) realm: String,
    /// `None`: it could not be read; a mistake is reported.
    pub(crate) scheme: Option<RawScheme>,
    pub(crate) forwards_credentials: bool,
}

#[derive(Debug)]
pub(crate) enum RawScheme {
    Basic { users_file: At<PathBuf>, identity_fields: Vec<IdentityField> },
    Token(Box<RawToken>),
    Forward(Box<RawForwardAuth>),
}

#[derive(Debug)]
pub(crate) struct RawToken {
    pub(crate) keys: RawKeySource,
    pub(crate) symmetric_keys: bool,
    pub(crate) algorithms: Vec<At<Algorithm>>,
    pub(crate) issuers: Vec<String>,
    pub(crate) audiences: Vec<String>,
    pub(crate) types: Vec<String>,
    pub(crate) leeway: Duration,
    pub(crate) expiry_required: bool,
    pub(crate) claims: Vec<(String, String)>,
    pub(crate) identity_fields: Vec<IdentityField>,
}

/// Where a key set comes from.
#[derive(Debug)]
pub(crate) enum RawKeySource {
    File(At<PathBuf>),
    Issuer { url: At<HttpUrl>, ca: Option<At<PathBuf>>, span: Span },
}

/// `forward` of `[authentication.NAME]`.
#[derive(Debug)]
pub(crate) struct RawForwardAuth {
    pub(crate) service: At<Arc<str>>,
    pub(crate) host: Option<String>,
    pub(crate) path: String,
    pub(crate) timeout: Duration,
    pub(crate) request_fields: Option<Vec<String>>,
    pub(crate) response_fields: Vec<String>,
    pub(crate) identity_fields: Vec<IdentityField>,
}

/// The keys for the scheme, of which there is exactly one.
const SCHEMES: [&str; 3] = ["basic", "jwt", "forward"];

pub(super) fn read(at: At<&str>, mut table: Table<'_>) -> RawAuthentication {
    if let Err(wrong) = name(at.value) {
        let title = "an authentication needs another name".to_owned();
        table.problems.report(wrong.at(title, at.span.clone()));
    }
    let realm = table.text("realm", http::field_value);
    let forwards_credentials = table.boolean("forward_credentials");
    let basic = table.table("basic").map(basic);
    let token = table.table("jwt").map(token);
    let forward = table.table("forward").map(forward);
    let mut given = SCHEMES.iter().filter_map(|key| Some((*key, table.key_span(key)?)));
    if let Some((key, first)) = given.next() {
        for (other, second) in given {
            table.problems.report(
                Diagnostic::error(format!("either `{key}` or `{other}`"), second, "and this")
                    .other(first.clone(), "this")
                    .help("write a second [authentication.NAME] for the other"),
            );
        }
    }
    if !SCHEMES.iter().any(|key| table.has_or_means(key)) {
        table.problems.report_absence(
            Diagnostic::error(
                "an authentication needs `basic`, `jwt` or `forward`",
                table.span.clone(),
                "has none of them",
            )
            .help(
                "write basic = { users_file = \"…\" }, jwt = { keys_file = \"…\" } \
                 or forward = { service = \"…\", path = \"/…\" }",
            ),
        );
    }
    let authentication = RawAuthentication {
        name: at.value.into(),
        span: at.span,
        realm: realm.map_or_else(|| at.value.to_owned(), |realm| realm.value),
        scheme: basic.or(token).or(forward).flatten(),
        forwards_credentials,
    };
    table.finish();
    authentication
}

fn basic(mut table: Table<'_>) -> Option<RawScheme> {
    let users_file = table.text("users_file", paths::file_path);
    let field = table.text("user_header", identity_field_name);
    table.finish();
    let field = field.map(|at| IdentityField { name: at.value, value: IdentityValue::User });
    Some(RawScheme::Basic { users_file: users_file?, identity_fields: field.into_iter().collect() })
}

fn forward(mut table: Table<'_>) -> Option<RawScheme> {
    let service = table.text("service", name);
    let host = table.text("host", net::authority);
    let path = table.text("path", http::path_and_query);
    let timeout = table.duration("timeout").value;
    let request_fields = table.texts("request_headers", request_field_name).map(all);
    let user = table.text("user_header", identity_field_name);
    let identity = table.texts("identity_headers", identity_field_name).unwrap_or_default();
    let mut names: Vec<_> = user.iter().map(|at| (at, IdentityValue::User)).collect();
    for at in &identity {
        let is_same = |(other, _): &&(&At<String>, _)| http::is_same_field(&other.value, &at.value);
        match names.iter().find(is_same) {
            Some((first, IdentityValue::User)) if first.value == at.value => {}
            Some((first, _)) => table.problems.report(taken_for_one(first, at)),
            None => names.push((at, IdentityValue::Response)),
        }
    }
    let field =
        |(at, value): (&At<String>, IdentityValue)| IdentityField { name: at.value.clone(), value };
    let identity_fields = names.into_iter().map(field).collect();
    let response_fields = table.texts("response_headers", response_field_name).map(all);
    table.finish();
    Some(RawScheme::Forward(Box::new(RawForwardAuth {
        service: service?,
        host: host.map(|at| at.value),
        path: path?.value,
        timeout,
        request_fields,
        response_fields: response_fields.unwrap_or_else(|| vec!["set-cookie".to_owned()]),
        identity_fields,
    })))
}

fn token(mut table: Table<'_>) -> Option<RawScheme> {
    let symmetric_keys = table.boolean("symmetric_keys");
    let keys = key_source(&mut table, symmetric_keys);
    let algorithms = table.texts("algorithms", algorithm).unwrap_or_default();
    for at in algorithms.iter().filter(|at| at.value.is_symmetric() && !symmetric_keys) {
        table.problems.report(
            Diagnostic::error(
                format!("{} needs a symmetric key", at.value.name()),
                at.span.clone(),
                "such keys are not used",
            )
            .help("write symmetric_keys = true, or leave it out"),
        );
    }
    let issuers = values(table.texts("issuer", filled));
    let audiences = values(table.texts("audience", filled));
    let types = values(table.texts("types", filled));
    let leeway = table.duration("leeway").value;
    let expiry_required = table.boolean("expiry_required");
    let claims = table.map("claims", filled, filled).into_iter();
    let fields = table.map("claim_headers", identity_field_name, filled);
    for (index, (name, _)) in fields.iter().enumerate() {
        let is_same =
            |(other, _): &&(At<String>, _)| http::is_same_field(&other.value, &name.value);
        if let Some((first, _)) = fields[..index].iter().find(is_same) {
            table.problems.report(taken_for_one(first, name));
        }
    }
    let field = |(name, claim): (At<String>, At<String>)| IdentityField {
        name: name.value,
        value: IdentityValue::Claim(claim.value),
    };
    table.finish();
    Some(RawScheme::Token(Box::new(RawToken {
        keys: keys?,
        symmetric_keys,
        algorithms,
        issuers,
        audiences,
        types,
        leeway,
        expiry_required,
        claims: claims.map(|(path, value)| (path.value, value.value)).collect(),
        identity_fields: fields.into_iter().map(field).collect(),
    })))
}

/// Returns the mistake of two names that differ, but not to every server.
fn taken_for_one(first: &At<String>, second: &At<String>) -> Diagnostic {
    let title = "two fields that some servers take for one";
    Diagnostic::error(title, second.span.clone(), "`_` and `-` are the same to them")
        .other(first.span.clone(), "first here")
}

fn key_source(table: &mut Table<'_>, symmetric_keys: bool) -> Option<RawKeySource> {
    let file = table.text("keys_file", paths::file_path);
    let url = table.text("keys_url", url);
    let ca = table.text("keys_ca", paths::file_path);
    let problems = table.problems;
    match (table.key_span("keys_file"), table.key_span("keys_url")) {
        (Some(first), Some(second)) => problems.report(
            Diagnostic::error("either `keys_file` or `keys_url`", second, "and this")
                .other(first, "this")
                .help("leave one of them out"),
        ),
        (None, None) if !table.means("keys_file") && !table.means("keys_url") => {
            problems.report_absence(
                Diagnostic::error("tokens need keys", table.span.clone(), "has none")
                    .help("write keys_file = \"…\" or keys_url = \"https://…\""),
            );
        }
        (Some(_), None) => {
            if let Some(span) = table.key_span("keys_ca") {
                let title = "`keys_ca` without `keys_url`";
                problems.report(
                    Diagnostic::error(title, span, "nothing is fetched").help("leave it out"),
                );
            }
        }
        _ => {}
    }
    let Some(url) = url else { return Some(RawKeySource::File(file?)) };
    if symmetric_keys {
        problems.report(
            Diagnostic::error(
                "symmetric keys are not fetched",
                table.span_of("symmetric_keys"),
                "`keys_url` has public keys",
            )
            .help("leave it out, or write keys_file with a file that only Weir's user can read"),
        );
    }
    Some(RawKeySource::Issuer { url, ca, span: table.span.clone() })
}

fn url(text: &str) -> Result<HttpUrl, Wrong> {
    text.parse().map_err(|error: UrlError| {
        Wrong::new(error.to_string())
            .help("write \"https://login.example.com/.well-known/jwks.json\"")
    })
}

fn all(read: Vec<At<String>>) -> Vec<String> {
    read.into_iter().map(|at| at.value).collect()
}

fn values(read: Option<Vec<At<String>>>) -> Vec<String> {
    all(read.unwrap_or_default())
}

/// A field of the request that the authentication server receives.
fn request_field_name(text: &str) -> Result<String, Wrong> {
    let name = http::field_name(text)?;
    if http::is_same_field(&name, "host") {
        return Err(Wrong::new("the server receives a Host in any case")
            .help("write host = \"…\" for another Host"));
    }
    http::changeable_field_name(text)
}

/// A field of the authentication server that is added to the response of another server.
fn response_field_name(text: &str) -> Result<String, Wrong> {
    const OF_BODY: [&str; 4] = ["accept-ranges", "content-", "etag", "vary"];
    const OF_WEIR: [&str; 5] =
        ["access-control-", "date", "proxy-status", "strict-transport-security", "x-request-id"];
    let name = http::changeable_field_name(text)?;
    if OF_BODY.iter().any(|prefix| name.starts_with(prefix)) {
        return Err(Wrong::new("this field describes a body")
            .help("the client gets the body of another server"));
    }
    if OF_WEIR.iter().any(|prefix| name.starts_with(prefix)) {
        return Err(Wrong::new("Weir or the server writes this field")
            .help("an authentication server adds fields such as Set-Cookie"));
    }
    Ok(name)
}

fn filled(text: &str) -> Result<String, Wrong> {
    if text.is_empty() { Err(Wrong::new("empty")) } else { Ok(text.to_owned()) }
}

fn algorithm(text: &str) -> Result<Algorithm, Wrong> {
    Algorithm::parse(text).ok_or_else(|| {
        let known: Vec<_> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
        Wrong::new("not an algorithm for tokens").help(format!("write one of {}", known.join(", ")))
    })
}

/// A field that only Weir writes.
fn identity_field_name(text: &str) -> Result<String, Wrong> {
    let name = http::changeable_field_name(text)?;
    if model::has_request_field_meaning(&name) {
        return Err(Wrong::new("HTTP or Weir already uses this field")
            .help("choose a name of its own, such as X-User"));
    }
    Ok(name)
}
