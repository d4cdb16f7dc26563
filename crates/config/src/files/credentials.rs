//! What authenticates requests: files of users and key sets, and servers that are asked.

use std::path::PathBuf;

use identity::users::VERIFICATIONS_MAX;
use identity::{KeySet, Secrets, Users};
use model::{
    Authentication, AuthenticationScheme, ForwardRules, HttpPeer, HttpUrl, KeySource, Material,
    TokenRules,
};

use super::Reader;
use crate::diagnostic::{At, Diagnostic, Span};
use crate::names::Names;
use crate::raw::{RawAuthentication, RawForwardAuth, RawKeySource, RawScheme, RawToken};

/// Of each file of users, this many mistakes are reported.
const MISTAKES_REPORTED_MAX: usize = 3;
/// Verifications that take more memory than this together are reported.
const MEMORY_UNREPORTED_MAX_MIB: usize = 256;

impl Reader<'_> {
    /// Returns an authentication with the contents of its file.
    pub(super) fn authentication(
        &self,
        raw: &RawAuthentication,
        names: &Names,
    ) -> Option<Authentication> {
        let (scheme, identity_fields) = match raw.scheme.as_ref()? {
            RawScheme::Basic { users_file, identity_fields } => {
                let users = self.users(users_file)?;
                (AuthenticationScheme::Basic { users }, identity_fields)
            }
            RawScheme::Token(token) => {
                let rules = Box::new(self.token(token)?);
                (AuthenticationScheme::Token(rules), &token.identity_fields)
            }
            RawScheme::Forward(forward) => {
                let rules = Box::new(forward_rules(forward, names)?);
                (AuthenticationScheme::Forward(rules), &forward.identity_fields)
            }
        };
        Some(Authentication {
            name: raw.name.clone(),
            realm: raw.realm.clone(),
            scheme,
            identity_fields: identity_fields.clone(),
            forwards_credentials: raw.forwards_credentials,
        })
    }

    fn users(&self, at: &At<PathBuf>) -> Option<Material> {
        let found = self.surroundings.file(&self.path(at));
        let is_open = found.as_ref().is_ok_and(|found| found.open_to_others);
        let material = self.material(at, found)?;
        let shown = at.value.display();
        if is_open {
            let title = format!("other users of this machine may read or change {shown}");
            let diagnostic =
                Diagnostic::warning(title, at.span.clone(), "passwords can be guessed from it")
                    .help(format!("`chmod o= {shown}` keeps them out"));
            self.problems.report(diagnostic.on_machine());
        }
        match Users::parse_within(&material.bytes, self.surroundings.password_bounds()) {
            Ok(users) => {
                if users.is_empty() {
                    self.warn(at, format!("no users in {shown}"), "no one can log in");
                }
                self.memory(at, &users);
                Some(material)
            }
            Err(mistakes) => {
                for mistake in mistakes.iter().take(MISTAKES_REPORTED_MAX) {
                    let title = format!("{shown}, line {}: unusable", mistake.line);
                    let diagnostic =
                        Diagnostic::error(title, at.span.clone(), mistake.message.clone());
                    self.problems.report(diagnostic.on_machine());
                }
                None
            }
        }
    }

    /// Warns if verifying passwords may take much memory.
    fn memory(&self, at: &At<PathBuf>, users: &Users) {
        let each_mib = users.memory_max_bytes() >> 20;
        let all_mib = each_mib * VERIFICATIONS_MAX;
        if all_mib > MEMORY_UNREPORTED_MAX_MIB {
            let title = format!("verifying passwords may take {all_mib} MiB of memory");
            let label = format!("up to {VERIFICATIONS_MAX} at a time, {each_mib} MiB each");
            let diagnostic = Diagnostic::warning(title, at.span.clone(), label)
                .help("hash the passwords with less memory: `m=65536` or less in `$argon2id$…`");
            self.problems.report(diagnostic.on_machine());
        }
    }

    fn token(&self, raw: &RawToken) -> Option<TokenRules> {
        let keys = match &raw.keys {
            RawKeySource::File(at) => KeySource::File(self.key_set(at, raw)?),
            RawKeySource::Issuer { url, ca, span } => {
                KeySource::Issuer(self.issuer_keys(url, ca.as_ref(), span)?)
            }
        };
        Some(TokenRules {
            keys,
            symmetric_keys: raw.symmetric_keys,
            algorithms: raw.algorithms.iter().map(|at| at.value.name().to_owned()).collect(),
            issuers: raw.issuers.clone(),
            audiences: raw.audiences.clone(),
            types: raw.types.clone(),
            leeway: raw.leeway,
            expiry_required: raw.expiry_required,
            claims: raw.claims.clone(),
        })
    }

    /// Returns a file with a key set that can be used.
    fn key_set(&self, at: &At<PathBuf>, raw: &RawToken) -> Option<Material> {
        let (secrets, found) = if raw.symmetric_keys {
            let bytes_max = identity::keys::KEY_SET_MAX_BYTES as u64;
            (Secrets::Accepted, self.surroundings.secret(&self.path(at), bytes_max))
        } else {
            (Secrets::Skipped, self.surroundings.file(&self.path(at)))
        };
        let keys = self.material(at, found)?;
        match KeySet::parse(&keys.bytes, secrets) {
            Ok(set) => {
                for skipped in set.skipped() {
                    let title = format!("a key in {} is not used", at.value.display());
                    self.warn(at, title, &skipped.to_string());
                }
                if let Some(first) = raw.algorithms.first()
                    && !raw.algorithms.iter().any(|named| set.serves(named.value))
                {
                    let title = format!("no key in {} is for `algorithms`", at.value.display());
                    let diagnostic =
                        Diagnostic::warning(title, first.span.clone(), "no token can pass");
                    self.problems.report(diagnostic.on_machine());
                }
            }
            Err(bad) => {
                let title = format!("no usable keys in {}", at.value.display());
                let diagnostic = Diagnostic::error(title, at.span.clone(), bad.to_string());
                self.problems.report(diagnostic.on_machine());
                return None;
            }
        }
        Some(keys)
    }

    /// Returns a key set that is fetched while Weir serves.
    fn issuer_keys(
        &self,
        url: &At<HttpUrl>,
        ca: Option<&At<PathBuf>>,
        span: &Span,
    ) -> Option<HttpPeer> {
        let is_https = url.value.is_https();
        if !is_https && !url.value.is_of_this_machine() {
            self.problems.report(
                Diagnostic::warning(
                    "keys are fetched in clear text",
                    url.span.clone(),
                    "anyone who can change the response can sign tokens",
                )
                .help("write https://"),
            );
        }
        self.peer(url, ca.map(|ca| ("keys_ca", ca)), span)
    }

    fn warn(&self, at: &At<PathBuf>, title: String, label: &str) {
        let diagnostic = Diagnostic::warning(title, at.span.clone(), label);
        self.problems.report(diagnostic.on_machine());
    }
}

/// Returns the rules for asking a server; `None` if there is no such service, which is reported elsewhere.
fn forward_rules(raw: &RawForwardAuth, names: &Names) -> Option<ForwardRules> {
    Some(ForwardRules {
        service: names.service(&raw.service.value)?,
        host: raw.host.clone(),
        path: raw.path.clone(),
        timeout: raw.timeout,
        request_fields: raw.request_fields.clone(),
        response_fields: raw.response_fields.clone(),
    })
}
