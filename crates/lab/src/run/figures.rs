//! Figures of a run, named by where they stand in what the steps have written.
//!
//! `before.load.totals.errors` is a number; `*` stands for every member of a list. Around paths
//! stand `sum(…)`, `min(…)`, `max(…)`, `mean(…)`, `count(…)` and `above(400, …)`, which counts the
//! values of at least 400, and `is(link, …)`, which counts those that are this word; between two of them, with spaces around it, `/`, `*`, `+` or `-`.

use serde_json::Value;

/// A figure to be found.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    first: Term,
    then: Option<(char, Term)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Term {
    Number(f64),
    /// The one value there.
    Path(String),
    Of(Fold, String),
}

#[derive(Clone, Debug, PartialEq)]
enum Fold {
    Sum,
    Min,
    Max,
    Mean,
    Count,
    Above(f64),
    Is(String),
}

impl Expression {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Expression, String> {
        let operator = ["/", "*", "+", "-"].iter().find_map(|operator| {
            let (first, second) = text.split_once(&format!(" {operator} "))?;
            Some((first, operator.chars().next()?, second))
        });
        match operator {
            Some((first, operator, second)) => Ok(Expression {
                first: Term::read(first)?,
                then: Some((operator, Term::read(second)?)),
            }),
            None => Ok(Expression { first: Term::read(text)?, then: None }),
        }
    }

    /// The paths in it.
    pub fn paths(&self) -> Vec<&str> {
        let terms = [Some(&self.first), self.then.as_ref().map(|(_, term)| term)];
        terms
            .into_iter()
            .flatten()
            .filter_map(|term| match term {
                Term::Number(_) => None,
                Term::Path(path) | Term::Of(_, path) => Some(path.as_str()),
            })
            .collect()
    }

    /// Its value in what a run has written.
    ///
    /// # Errors
    /// Which path leads to no number.
    pub fn value(&self, figures: &Value) -> Result<f64, String> {
        let first = self.first.value(figures)?;
        let Some((operator, second)) = &self.then else { return Ok(first) };
        let second = second.value(figures)?;
        let value = match operator {
            '/' => first / second,
            '*' => first * second,
            '+' => first + second,
            _ => first - second,
        };
        if value.is_finite() { Ok(value) } else { Err("a quotient by 0".to_owned()) }
    }
}

impl Term {
    fn read(text: &str) -> Result<Term, String> {
        let text = text.trim();
        if let Ok(number) = text.parse() {
            return Ok(Term::Number(number));
        }
        let Some((name, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('('))
        else {
            return path(text).map(Term::Path);
        };
        let (fold, inner) = match name {
            "sum" => (Fold::Sum, inner),
            "min" => (Fold::Min, inner),
            "max" => (Fold::Max, inner),
            "mean" => (Fold::Mean, inner),
            "count" => (Fold::Count, inner),
            "above" => {
                let wrong = "`above(NUMBER, PATH)`";
                let (number, inner) = inner.split_once(',').ok_or(wrong)?;
                (Fold::Above(number.trim().parse().map_err(|_| wrong)?), inner)
            }
            "is" => {
                let (word, inner) = inner.split_once(',').ok_or("`is(WORD, PATH)`")?;
                (Fold::Is(word.trim().to_owned()), inner)
            }
            _ => return Err(format!("`{name}` is none of sum, min, max, mean, count, above, is")),
        };
        path(inner.trim()).map(|path| Term::Of(fold, path))
    }

    fn value(&self, figures: &Value) -> Result<f64, String> {
        match self {
            Term::Number(number) => Ok(*number),
            Term::Path(path) => match values(path, figures)[..] {
                [one] => Ok(one),
                // A counter that has not moved is not told.
                [] if path.contains(".counters.") => Ok(0.0),
                [] => Err(format!("there is no figure at {path}")),
                _ => Err(format!("there are several figures at {path}")),
            },
            Term::Of(fold, path) => {
                let values = values(path, figures);
                let count = values.len() as f64;
                let least = values.iter().copied().min_by(f64::total_cmp);
                let most = values.iter().copied().max_by(f64::total_cmp);
                let none = || format!("there is no figure at {path}");
                match fold {
                    Fold::Sum => Ok(values.iter().sum()),
                    Fold::Count => Ok(count),
                    Fold::Above(from) => {
                        Ok(values.iter().filter(|value| **value >= *from).count() as f64)
                    }
                    Fold::Is(word) => {
                        let texts = places(path, figures).into_iter().filter_map(Value::as_str);
                        Ok(texts.filter(|text| text == word).count() as f64)
                    }
                    Fold::Min => least.ok_or_else(none),
                    Fold::Max => most.ok_or_else(none),
                    Fold::Mean if count > 0.0 => Ok(values.iter().sum::<f64>() / count),
                    Fold::Mean => Err(none()),
                }
            }
        }
    }
}

fn path(text: &str) -> Result<String, String> {
    let fits = !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-*".contains(c))
        && text.split('.').all(|part| !part.is_empty());
    if fits {
        Ok(text.to_owned())
    } else {
        Err(format!("`{text}` is no place of a figure: words with points between them"))
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
            "a": { "list": [{ "n": 1 }, { "n": 5 }, { "n": 3 }], "one": 4.5, "yes": true, "word": "link" },
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
            ("b.one / a.one", 2.0),
            ("b.one - 2", 7.0),
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
        for wrong in ["", "a..b", "a b", "most(a.b)", "above(a.b)", "a / "] {
            assert!(Expression::read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Expression::read("b.one / sum(a.x)").unwrap().paths(), ["b.one", "a.x"]);
    }
}
