//! Evaluates conditions other than exact values.

use model::{Condition, ConditionOn, Test};

use super::{RequestView, Subject};
use crate::query::values;

/// Returns whether a condition holds. One that tests several values (of fields, parameters, cookies or
/// names in a certificate) holds if one of them passes; a negated one holds if none does. One that
/// cannot be evaluated does not hold, negated or not.
pub(super) fn holds<R: RequestView>(condition: &Condition, subject: &Subject<'_, R>) -> bool {
    let Subject { head, arrival, .. } = subject;
    let test = &condition.test;
    let passes = match &condition.on {
        ConditionOn::Client => arrival.client.map(|client| match test {
            Test::Among(networks) => networks.contains(client),
            Test::Exact(_) | Test::Pattern(_) | Test::Present => false,
        }),
        ConditionOn::Path => Some(is_passed(test, subject.canonical_path().as_bytes())),
        ConditionOn::Field(name) => {
            Some(head.field_values(name).any(|value| is_passed(test, value)))
        }
        ConditionOn::Query(name) => Some(head.query().is_some_and(|query| {
            values(query, name).any(|value| match test {
                Test::Exact(expected) => value.eq(expected.bytes()),
                Test::Pattern(_) => is_passed(test, &value.collect::<Vec<_>>()),
                Test::Present => true,
                Test::Among(_) => false,
            })
        })),
        ConditionOn::Cookie(name) => {
            Some(head.cookie_values(name).any(|value| is_passed(test, value)))
        }
        ConditionOn::Certificate(part) => match arrival.certificate {
            None => Some(false),
            Some(names) => names
                .of(*part)
                .map(|names| names.iter().any(|name| is_passed(test, name.as_bytes()))),
        },
    };
    passes.is_some_and(|passes| passes != condition.negated)
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
