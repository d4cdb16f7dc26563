//! Reads `[authentication.NAME]`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use identity::Algorithm;
use model::{IdentityField, IdentityValue};

use super::table::Table;
use super::{http, name, paths};
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
}

#[derive(Debug)]
pub(crate) struct RawToken {
    pub(crate) keys_file: At<PathBuf>,
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

pub(super) fn read(at: At<&str>, mut table: Table<'_>) -> RawAuthentication {
    if let Err(wrong) = name(at.value) {
        let title = "an authentication needs another name".to_owned();
        table.problems.report(wrong.at(title, at.span.clone()));
    }
    let realm = table.text("realm", http::field_value);
    let forwards_credentials = table.boolean("forward_credentials");
    let basic = table.table("basic").map(basic);
    let token = table.table("jwt").map(token);
    if let (Some(_), Some(second)) = (&basic, table.key_span("jwt")) {
        table.problems.report(
            Diagnostic::error("either `basic` or `jwt`", second, "and this")
                .other(table.span_of("basic"), "this")
                .help("write a second [authentication.NAME] for the other"),
        );
    }
    if !["basic", "jwt"].iter().any(|key| table.has_or_means(key)) {
        table.problems.report_absence(
            Diagnostic::error(
                "an authentication needs `basic` or `jwt`",
                table.span.clone(),
                "has neither",
            )
            .help("write basic = { users_file = \"…\" } or jwt = { keys_file = \"…\" }"),
        );
    }
    let authentication = RawAuthentication {
        name: at.value.into(),
        span: at.span,
        realm: realm.map_or_else(|| at.value.to_owned(), |realm| realm.value),
        scheme: basic.or(token).flatten(),
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

fn token(mut table: Table<'_>) -> Option<RawScheme> {
    let keys_file = table.text("keys_file", paths::file_path);
    let symmetric_keys = table.boolean("symmetric_keys");
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
            table.problems.report(
                Diagnostic::error(
                    "two fields that some servers take for one",
                    name.span.clone(),
                    "`_` and `-` are the same to them",
                )
                .other(first.span.clone(), "first here"),
            );
        }
    }
    let field = |(name, claim): (At<String>, At<String>)| IdentityField {
        name: name.value,
        value: IdentityValue::Claim(claim.value),
    };
    table.finish();
    Some(RawScheme::Token(Box::new(RawToken {
        keys_file: keys_file?,
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

fn values(read: Option<Vec<At<String>>>) -> Vec<String> {
    read.unwrap_or_default().into_iter().map(|at| at.value).collect()
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
    if http::is_reserved(&name) {
        return Err(Wrong::new("HTTP or Weir already uses this field")
            .help("choose a name of its own, such as X-User"));
    }
    Ok(name)
}
