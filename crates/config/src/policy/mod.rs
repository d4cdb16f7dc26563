//! Reads the specs of `ServicePolicy` and `RoutePolicy`, two kinds of objects of Kubernetes by which users of a namespace
//! state keys of `[service.NAME]`, `[[route]]` and `[authentication.NAME]` for their Services and routes.
//!
//! A policy becomes tables of the configuration, which the reader and the checks of files then read: so no rule is
//! written twice. Nothing in a policy is substituted, and no policy reads a file.

mod keys;
mod keys_url;
mod route;
mod schema;
mod service;
mod tables;
mod words;

use std::path::Path;

use identity::CostBounds;
use model::{Material, Snapshot};
use serde_json::{Map, Value};

use crate::{
    Addition, Found, Report, SYSTEM_AUTHORITIES, Severity, Surroundings, Unreadable, check_with,
};
use tables::{MISTAKES_MAX, Tables};

pub use route::{AuthenticationTerms, BackendRef, CompressionTerms, RouteTerms};
pub use schema::{Kind, schema};
pub use service::ServiceTerms;

/// What to write in place of a field for which [`is_identity_field`] is false.
pub const IDENTITY_FIELDS_HELP: &str = "use X-User, X-Auth-User, X-Forwarded-User, -Email, -Groups, -Preferred-Username, or names \
     that begin with X-Auth-Request-, X-Authentik-, X-WebAuth- or Remote-";

/// Returns whether objects of a namespace may have a field, in lower case, tell servers who sent a request.
///
/// Weir removes such fields from all requests that clients send, to all backends. So only names are permitted that no client
/// needs: otherwise users of one namespace could remove the fields of others.
pub fn is_identity_field(name: &str) -> bool {
    const STARTS: &[&str] = &["x-auth-request-", "x-authentik-", "x-webauth-", "remote-"];
    STARTS.iter().any(|start| name.starts_with(start))
        || matches!(
            name,
            "x-user"
                | "x-auth-user"
                | "x-forwarded-user"
                | "x-forwarded-email"
                | "x-forwarded-groups"
                | "x-forwarded-preferred-username"
        )
}

/// A mistake in a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where it is: `spec.queue.lengthMax`.
    pub path: String,
    /// What is wrong and what to write, in one line.
    pub problem: String,
}

/// What a policy refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reference<'a> {
    /// The key `auth` of the Secret with this name.
    UsersSecret(&'a str),
    /// The key `jwks.json` of the `ConfigMap` with this name.
    KeysConfigMap(&'a str),
    /// The certificates of the authorities that the balancer's system trusts, PEM: for keys from an `https` URL.
    SystemAuthorities,
}

/// Returns the value at a path, unless it is null.
fn at<'a>(spec: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let mut value = spec.get(*first)?;
    for key in rest {
        value = value.get(key)?;
    }
    (!value.is_null()).then_some(value)
}

/// What a policy refers to, and nothing else.
struct References<'a> {
    material: &'a dyn Fn(Reference<'_>) -> Result<Material, String>,
    tables: &'a Tables,
}

impl Surroundings for References<'_> {
    fn file(&self, path: &Path) -> Result<Found, Unreadable> {
        let Tables { users_secret, keys_config_map, .. } = self.tables;
        let is = |of: &str, name: &str| path.as_os_str() == format!("{of} {name}").as_str();
        let users = users_secret.as_deref().filter(|name| is("the Secret", name));
        let keys = keys_config_map.as_deref().filter(|name| is("the ConfigMap", name));
        let reference = if let Some(name) = users {
            Reference::UsersSecret(name)
        } else if let Some(name) = keys {
            Reference::KeysConfigMap(name)
        } else if SYSTEM_AUTHORITIES.first().is_some_and(|known| path == Path::new(known)) {
            Reference::SystemAuthorities
        } else {
            return Err(Unreadable::not_here());
        };
        match (self.material)(reference) {
            Ok(material) => Ok(Found { material, only_root: false, open_to_others: false }),
            Err(why) => Err(Unreadable { why, ..Unreadable::not_here() }),
        }
    }

    /// The policy does not tell. Without a fleet, what holds over one holds for each balancer.
    fn may_have_fleet(&self) -> bool {
        true
    }

    fn password_bounds(&self) -> &'static CostBounds {
        &CostBounds::TENANT
    }

    fn now_s(&self) -> Option<i64> {
        None
    }
}

/// Reads and checks the tables of a policy.
fn snapshot(
    tables: Tables,
    material: &dyn Fn(Reference<'_>) -> Result<Material, String>,
) -> Result<Snapshot, Vec<Mistake>> {
    // Nothing was read after the last mistake.
    if tables.is_full() {
        return Err(tables.mistakes);
    }
    const MAIN: &str = "[[listener]]\naddress = \"127.0.0.1:1\"\n";
    // In an addition nothing is substituted.
    let addition = Addition { name: "a policy".to_owned(), text: tables.text.as_str().into() };
    let surroundings = References { material, tables: &tables };
    let report = match check_with(MAIN, "the balancer", &surroundings, &[addition]) {
        Ok(checked) if tables.mistakes.is_empty() => return Ok(checked.snapshot),
        Ok(_) => return Err(tables.mistakes),
        Err(report) => report,
    };
    Err(mistakes(tables, &report))
}

/// Returns the mistakes of the tables and of the report, in the words of policies.
fn mistakes(tables: Tables, report: &Report) -> Vec<Mistake> {
    let start = report.sources.all().get(1).map_or(0, |source| source.start);
    let errors = report.found.iter().filter(|one| one.severity == Severity::Error);
    let mut mistakes = tables.mistakes.clone();
    for error in errors {
        let span = &error.primary.span;
        let span = span.start.saturating_sub(start)..span.end.saturating_sub(start);
        let path = tables.path_of(span);
        let is_known = |known: &Mistake| known.path == path;
        // What seems missing may be what the tables could not have.
        if tables.strange.contains(path) || tables.mistakes.iter().any(is_known) {
            continue;
        }
        let mistake = Mistake { path: path.to_owned(), problem: words::problem(error) };
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
        if mistakes.len() == MISTAKES_MAX {
            break;
        }
    }
    if mistakes.is_empty() {
        mistakes.push(not_built());
    }
    mistakes
}

fn not_built() -> Mistake {
    let problem = "this policy was found valid but could not be used: a bug in Weir";
    Mistake { path: "spec".to_owned(), problem: problem.to_owned() }
}
