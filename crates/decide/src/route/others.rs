//! Conditions other than exact values.

use std::borrow::Cow;
use std::net::IpAddr;

use model::{Condition, ConditionOn, Test};

use super::query::values;
use super::{Arrival, RequestView};

/// Returns whether a condition holds. One that tests several values (of fields, parameters, cookies or
/// names in a certificate) holds if one of them passes; a negated one holds if none does.
pub(super) fn holds<R: RequestView>(
    condition: &Condition,
    head: &R,
    arrival: &Arrival<'_>,
) -> bool {
    let test = &condition.test;
    let passes = match &condition.on {
        ConditionOn::Client => is_among(test, arrival.client),
        ConditionOn::Path => {
            let path = head.path();
            let canonical = if model::path::is_canonical(path) {
                Cow::Borrowed(path)
            } else {
                Cow::Owned(model::path::canonical(path))
            };
            is_passed(test, canonical.as_bytes())
        }
        ConditionOn::Field(name) => head.field_values(name).any(|value| is_passed(test, value)),
        ConditionOn::Query(name) => head.query().is_some_and(|query| {
            values(query, name).any(|value| match test {
                Test::Exact(expected) => value.eq(expected.bytes()),
                Test::Pattern(_) => is_passed(test, &value.collect::<Vec<_>>()),
                Test::Present => true,
                Test::Among(_) => false,
            })
        }),
        ConditionOn::Cookie(name) => head.cookie_values(name).any(|value| is_passed(test, value)),
        ConditionOn::Certificate(part) => arrival.certificate.is_some_and(|names| {
            names.of(*part).iter().any(|name| is_passed(test, name.as_bytes()))
        }),
    };
    passes != condition.negated
}

/// Tests a value that is text.
fn is_passed(test: &Test, value: &[u8]) -> bool {
    match test {
        Test::Exact(expected) => value == expected.as_bytes(),
        Test::Pattern(pattern) => pattern.matches(value),
        Test::Present => true,
        Test::Among(_) => false,
    }
}

fn is_among(test: &Test, client: IpAddr) -> bool {
    match test {
        Test::Among(networks) => networks.contains(client),
        Test::Exact(_) | Test::Pattern(_) | Test::Present => false,
    }
}
