//! Wildcards in hosts of Ingresses: each covers exactly one label. That of a [`HostPattern`], as in the Gateway API, covers
//! more, too.

use model::{Condition, ConditionOn, HostPattern, Pattern, Test};

/// Returns whether a host of an Ingress covers another one.
pub fn covers(pattern: &HostPattern, host: &HostPattern) -> bool {
    match (pattern, host) {
        (HostPattern::Wildcard(suffix), HostPattern::Exact(name)) => {
            name.split_once('.').is_some_and(|(_, rest)| rest == suffix)
        }
        (HostPattern::Exact(_) | HostPattern::Wildcard(_), _) => pattern == host,
    }
}

/// Returns the condition that requests for a host with a wildcard meet. `None`: it has none.
pub fn one_label(host: &HostPattern) -> Option<Condition> {
    let HostPattern::Wildcard(suffix) = host else { return None };
    let suffix = suffix.replace('.', "\\.");
    let pattern = Pattern::parse(&format!("(?i)^[^.:]+\\.{suffix}\\.?(:[0-9]*)?$")).ok();
    // A host has no characters with a meaning in expressions.
    let test = Test::Pattern(pattern?);
    Some(Condition { on: ConditionOn::Field("host".to_owned()), test, negated: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_covers_one_label() {
        let host = HostPattern::Wildcard("a-b.example.com".to_owned());
        let condition = one_label(&host).unwrap();
        let Test::Pattern(pattern) = condition.test else { panic!("not an expression") };
        for (host, expected) in [
            ("x.a-b.example.com", true),
            ("X.A-B.Example.com", true),
            ("x.a-b.example.com:8080", true),
            ("x.a-b.example.com.", true),
            ("x.y.a-b.example.com", false),
            ("a-b.example.com", false),
            (".a-b.example.com", false),
            ("x.a-bxexample.com", false),
            ("x.a-b.example.com.evil", false),
        ] {
            assert_eq!(pattern.matches(host.as_bytes()), expected, "{host}");
        }
        assert!(one_label(&HostPattern::Exact("a.example.com".to_owned())).is_none());
    }
}
