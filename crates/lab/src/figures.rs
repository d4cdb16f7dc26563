//! Figures of a run: expressions over paths in the steps' JSON.
//!
//! `before.load.totals.errors` is a number; `*` selects every member of a list. Functions of all values
//! of a path: `sum(…)`, `min(…)`, `max(…)`, `mean(…)`, `count(…)`, `above(400, …)` (how many are at
//! least 400), `is(link, …)` (how many equal this text), `says(sent again, …)` (how many contain this
//! text). Operators are `/`, `*`, `+` and `-` with spaces around them, and parentheses.

mod read;

use serde_json::Value;

/// An expression over the JSON of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(Term);

/// A part of an expression.
#[derive(Clone, Debug, PartialEq)]
enum Term {
    Number(f64),
    /// The only value at this path.
    Path(String),
    Of(Fold, String),
    /// Two operands and their operator.
    Two(Box<Term>, char, Box<Term>),
}

/// How the values of a path are combined.
#[derive(Clone, Debug, PartialEq)]
enum Fold {
    Sum,
    Min,
    Max,
    Mean,
    Count,
    /// How many are at least this.
    Above(f64),
    /// How many equal this text.
    Is(String),
    /// How many contain this text.
    Says(String),
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Expression, String> {
        read::read(text).map(Expression)
    }

    /// The paths in this expression.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths = Vec::new();
        self.0.paths(&mut paths);
        paths
    }

    /// Its value in the JSON of a run.
    ///
    /// # Errors
    /// Which path leads to no number.
    pub fn value(&self, figures: &Value) -> Result<f64, String> {
        let value = self.0.value(figures)?;
        if value.is_finite() { Ok(value) } else { Err("a quotient by 0".to_owned()) }
    }
}

impl Term {
    fn paths<'a>(&'a self, paths: &mut Vec<&'a str>) {
        match self {
            Term::Number(_) => {}
            Term::Path(path) | Term::Of(_, path) => paths.push(path),
            Term::Two(first, _, second) => {
                first.paths(paths);
                second.paths(paths);
            }
        }
    }

    fn value(&self, figures: &Value) -> Result<f64, String> {
        match self {
            Term::Number(number) => Ok(*number),
            Term::Path(path) => match values(path, figures)[..] {
                [one] => Ok(one),
                // A counter that has not changed is left out.
                [] if path.contains(".counters.") => Ok(0.0),
                [] => Err(format!("there is no figure at {path}")),
                _ => Err(format!("there are several figures at {path}")),
            },
            Term::Of(fold, path) => fold.value(path, figures),
            Term::Two(first, operator, second) => {
                let (first, second) = (first.value(figures)?, second.value(figures)?);
                Ok(match operator {
                    '/' => first / second,
                    '*' => first * second,
                    '+' => first + second,
                    _ => first - second,
                })
            }
        }
    }
}

impl Fold {
    fn value(&self, path: &str, figures: &Value) -> Result<f64, String> {
        let values = values(path, figures);
        let texts = || places(path, figures).into_iter().filter_map(Value::as_str);
        let none = || format!("there is no figure at {path}");
        match self {
            // An empty sum is -0 in floating point.
            Fold::Sum => Ok(values.iter().sum::<f64>() + 0.0),
            Fold::Count => Ok(values.len() as f64),
            Fold::Above(from) => Ok(values.iter().filter(|value| *value >= from).count() as f64),
            Fold::Is(word) => Ok(texts().filter(|text| text == word).count() as f64),
            Fold::Says(words) => Ok(texts().filter(|text| text.contains(words)).count() as f64),
            Fold::Min => values.iter().copied().min_by(f64::total_cmp).ok_or_else(none),
            Fold::Max => values.iter().copied().max_by(f64::total_cmp).ok_or_else(none),
            Fold::Mean if values.is_empty() => Err(none()),
            Fold::Mean => Ok(values.iter().sum::<f64>() / values.len() as f64),
        }
    }
}

/// Every number at a path.
pub fn values(path: &str, figures: &Value) -> Vec<f64> {
    places(path, figures).into_iter().filter_map(number).collect()
}

/// Everything at a path.
pub(crate) fn places<'a>(path: &str, figures: &'a Value) -> Vec<&'a Value> {
    let mut at = vec![figures];
    for part in path.split('.') {
        at = at
            .into_iter()
            .flat_map(|value| -> Vec<&Value> {
                match (value, part) {
                    (Value::Array(list), "*") => list.iter().collect(),
                    (Value::Object(map), "*") => map.values().collect(),
                    (Value::Array(list), _) => part
                        .parse()
                        .ok()
                        .and_then(|index: usize| list.get(index))
                        .into_iter()
                        .collect(),
                    (Value::Object(map), _) => map.get(part).into_iter().collect(),
                    _ => Vec::new(),
                }
            })
            .collect();
    }
    at
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(is) => Some(f64::from(u8::from(*is))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_folded_and_divided() {
        let figures = serde_json::json!({
            "a": { "list": [{ "n": 1 }, { "n": 5 }, { "n": 3 }], "one": 4.5, "yes": true, "word": "link", "notes": ["no", "the link is full"] },
            "b": { "one": 9 },
        });
        for (text, expected) in [
            ("a.one", 4.5),
            ("a.yes", 1.0),
            ("a.list.1.n", 5.0),
            ("sum(a.list.*.n)", 9.0),
            ("max(a.list.*.n)", 5.0),
            ("mean(a.list.*.n)", 3.0),
            ("above(3, a.list.*.n)", 2.0),
            ("count(a.list.*)", 0.0),
            ("count(*.one)", 2.0),
            ("is(link, a.word)", 1.0),
            ("is(cpu, a.word)", 0.0),
            ("says(link, a.notes.*)", 1.0),
            ("says(link is full, a.notes.*) + says(x, a.notes.*)", 1.0),
            ("b.one / a.one", 2.0),
            ("b.one - 2", 7.0),
            ("b.one - 2 - 3 * 2", 1.0),
            ("(sum(a.list.*.n) - b.one) / 0.5 + 18 / (b.one - 3 * 1) / 3", 1.0),
            ("sum(a.counters.h.TcpExtX)", 0.0),
            ("a.counters.h.TcpExtX", 0.0),
        ] {
            let expression = Expression::read(text).unwrap();
            let value = expression.value(&figures).unwrap();
            assert!((value - expected).abs() < 1e-9, "{text}: {value}");
        }
        for missing in ["a.two", "a.*.n", "a.list.*.n", "min(a.x.*)", "b.one / 0"] {
            let expression = Expression::read(missing).unwrap();
            assert!(expression.value(&figures).is_err(), "{missing}");
        }
        let deep = "(".repeat(2_000);
        for wrong in [
            "",
            "a..b",
            "a b",
            "most(a.b)",
            "above(a.b)",
            "a / ",
            "/ a",
            "(a.b",
            "a.b)",
            "a.b (c.d)",
            "sum(a.b",
            "sum((a.b))",
            "says(a.b)",
            &deep,
        ] {
            assert!(Expression::read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Expression::read("b.one / sum(a.x)").unwrap().paths(), ["b.one", "a.x"]);
    }
}
