//! An Ingress whose backends get a part of the requests of another one (canary).

use model::{Condition, ConditionOn, Pattern, Test};

use super::annotations::{Annotations, shown};
use crate::resolve::route::syntax;

/// The largest weight that is read.
const WEIGHT_MAX: u32 = 1_000_000;
/// The longest expression that is read.
const EXPRESSION_MAX_BYTES: usize = 1024;

/// Which requests go to the backends of the canary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Canary {
    /// Conditions that decide, in this order: who meets one goes to the canary or, if it is false, to the other backend.
    pub conditions: Vec<(Condition, bool)>,
    /// The share of all others…
    pub weight: u32,
    /// …in proportion to this.
    pub total: u32,
}

/// Reads it. `None`: the Ingress is none.
pub fn read(annotations: &mut Annotations<'_>) -> Option<Canary> {
    let is_on = annotations.is_on("canary");
    let total = annotations.number("canary-weight-total", 1..=WEIGHT_MAX).unwrap_or(100);
    let weight = annotations.number("canary-weight", 0..=WEIGHT_MAX).unwrap_or(0).min(total);
    let header = annotations.text("canary-by-header");
    let value = annotations.text("canary-by-header-value");
    let pattern = annotations.text("canary-by-header-pattern");
    let cookie = annotations.text("canary-by-cookie");
    if !is_on {
        return None;
    }
    let mut conditions = Vec::new();
    if let Some(header) = header {
        if syntax::is_token(header) {
            let on = ConditionOn::Field(header.to_ascii_lowercase());
            let tests = header_tests(annotations, value, pattern);
            conditions.extend(tests.into_iter().map(|(test, is_canary)| {
                (Condition { on: on.clone(), test, negated: false }, is_canary)
            }));
        } else {
            annotations.invalid(
                "canary-by-header",
                &format!("is {}, which is not the name of a header field", shown(header)),
            );
        }
    }
    if let Some(cookie) = cookie {
        if syntax::is_token(cookie) {
            let on = ConditionOn::Cookie(cookie.to_owned());
            conditions.extend(always_and_never().map(|(test, is_canary)| {
                (Condition { on: on.clone(), test, negated: false }, is_canary)
            }));
        } else {
            annotations.invalid(
                "canary-by-cookie",
                &format!("is {}, which is not the name of a cookie", shown(cookie)),
            );
        }
    }
    Some(Canary { conditions, weight, total })
}

fn always_and_never() -> [(Test, bool); 2] {
    [(Test::Exact("always".into()), true), (Test::Exact("never".into()), false)]
}

fn header_tests(
    annotations: &mut Annotations<'_>,
    value: Option<&str>,
    pattern: Option<&str>,
) -> Vec<(Test, bool)> {
    // As in ingress-nginx, a value precedes an expression.
    if let Some(value) = value {
        return vec![(Test::Exact(value.into()), true)];
    }
    let Some(text) = pattern else { return always_and_never().into() };
    let pattern = if text.len() <= EXPRESSION_MAX_BYTES {
        Pattern::parse(text)
    } else {
        Err(format!("it has more than {EXPRESSION_MAX_BYTES} bytes"))
    };
    match pattern {
        Ok(pattern) => vec![(Test::Pattern(pattern), true)],
        Err(why) => {
            let why = format!("({}) is not a regular expression: {why}", shown(text));
            annotations.invalid("canary-by-header-pattern", &why);
            Vec::new()
        }
    }
}
