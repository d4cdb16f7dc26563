//! Session persistence of a rule → affinity of its routes.

use std::sync::Arc;

use model::{RouteAffinity, SessionCarrier, hash_bytes};

use crate::ir::Route;
use crate::ir::request::{RequestRule, SessionCarrier as Carrier};

/// Returns the affinity of a rule's routes. Rules do not share sessions, whatever their names: "Route rules referencing the
/// same service MUST NOT share persistent sessions" (GEP-1619, Edge Case Behavior).
pub(super) fn affinity(rule: &RequestRule, route: &Route) -> Option<RouteAffinity> {
    let session = rule.session.as_ref()?;
    let scope = scope(rule, route);
    let name = session.name.clone().unwrap_or_else(|| name_for(&scope));
    let carrier = match session.carrier {
        Carrier::SessionCookie => SessionCarrier::Cookie { name, is_permanent: false },
        Carrier::PermanentCookie => SessionCarrier::Cookie { name, is_permanent: true },
        Carrier::Header => SessionCarrier::Field(name.to_ascii_lowercase()),
    };
    let lifetime_max = session.lifetime;
    Some(RouteAffinity { carrier, scope, lifetime_max, idle_max: None, key_file: None })
}

/// Returns what tells the sessions of this rule from those of others: its name if it has one, which stays when other rules
/// are added before it.
fn scope(rule: &RequestRule, route: &Route) -> Arc<str> {
    let kind = route.kind.name();
    match &rule.name {
        Some(name) => format!("{kind} {}/{name}", route.key).into(),
        None => format!("{kind} {}#{}", route.key, rule.index).into(),
    }
}

/// Returns a name for the cookie or field of a rule that states none; it does not show clients how objects are called.
fn name_for(scope: &str) -> String {
    format!("weir-session-{:016x}", hash_bytes(scope.bytes()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use model::ObjectAge;

    use super::*;
    use crate::ir::filter::Filters;
    use crate::ir::request::{Session, Timeouts};
    use crate::ir::{RouteKind, Rules};
    use crate::objects::Key;

    fn of(kind: RouteKind, name: &str, (index, rule): (usize, Option<&str>)) -> RouteAffinity {
        with(kind, name, (index, rule), (None, Carrier::SessionCookie))
    }

    fn with(
        kind: RouteKind,
        name: &str,
        (index, rule): (usize, Option<&str>),
        (session, carrier): (Option<&str>, Carrier),
    ) -> RouteAffinity {
        let age = ObjectAge { created: None, namespace: "n".into(), name: name.into() };
        let route = Route {
            kind,
            key: Key::new("n", name),
            rank: 0,
            age: age.into(),
            rules: Rules::Requests(Vec::new()),
        };
        let lifetime = Some(Duration::from_secs(300));
        let session = Session { name: session.map(str::to_owned), carrier, lifetime };
        let rule = RequestRule {
            index,
            name: rule.map(Into::into),
            matches: Vec::new(),
            filters: Filters::default(),
            timeouts: Timeouts::default(),
            retry: None,
            session: Some(session),
            backends: Vec::new(),
            extras: None,
        };
        affinity(&rule, &route).unwrap()
    }

    #[test]
    fn each_rule_has_its_own_sessions() {
        use RouteKind::{Grpc, Http};
        let all = [
            of(Http, "a", (0, None)),
            of(Http, "a", (1, None)),
            of(Http, "a", (0, Some("x"))),
            of(Http, "a", (0, Some("0"))),
            of(Http, "b", (0, None)),
            of(Grpc, "a", (0, None)),
        ];
        let scopes: HashSet<_> = all.iter().map(|one| &one.scope).collect();
        let name = |one: &RouteAffinity| match &one.carrier {
            SessionCarrier::Cookie { name, is_permanent: false } => name.clone(),
            other => panic!("{other:?}"),
        };
        let names: HashSet<_> = all.iter().map(name).collect();
        assert_eq!((scopes.len(), names.len()), (6, 6));
        // A name stays when rules are added before.
        assert_eq!(of(Http, "a", (0, Some("x"))), of(Http, "a", (1, Some("x"))));
        // As clients keep it.
        assert_eq!(name(&all[0]), "weir-session-0d9f3467b17b9167");
    }

    #[test]
    fn what_carries_a_session() {
        let with =
            |session, carrier| with(RouteKind::Http, "a", (0, None), (session, carrier)).carrier;
        let cookie = |is_permanent| SessionCarrier::Cookie { name: "S".into(), is_permanent };
        assert_eq!(with(Some("S"), Carrier::SessionCookie), cookie(false));
        assert_eq!(with(Some("S"), Carrier::PermanentCookie), cookie(true));
        assert_eq!(with(Some("S"), Carrier::Header), SessionCarrier::Field("s".into()));
    }
}
