//! Reads numbers, durations and sizes of a table, within the bounds of its spec.

use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::table::{Entry, Table, mismatch};
use crate::diagnostic::{At, Diagnostic, Span, Wrong};
use crate::schema::spec::{Absent, Kind};
use crate::units;

impl Table<'_> {
    /// A whole number within the spec's bounds; the default if absent or wrong.
    pub(crate) fn integer<T: TryFrom<u64> + Default>(&mut self, key: &'static str) -> At<T> {
        self.integer_if(key).unwrap_or_else(|| {
            let default = match self.key_spec(key).absent {
                Absent::Integer(default) => T::try_from(default).unwrap_or_default(),
                _ => T::default(),
            };
            At { value: default, span: self.span_of(key) }
        })
    }

    /// A whole number within the spec's bounds.
    pub(crate) fn integer_if<T: TryFrom<u64>>(&mut self, key: &'static str) -> Option<At<T>> {
        let kind = self.key_spec(key).kind;
        let value = self.value(key)?;
        let Some(read) = integer(value.get_ref()) else {
            self.mismatch(key, value);
            return None;
        };
        let number = u64::try_from(read).ok();
        let fits = match kind {
            Kind::Integer { min, max } => number.is_some_and(|n| (min..=max).contains(&n)),
            Kind::OneOf(numbers) => number.is_some_and(|n| numbers.contains(&n)),
            _ => true,
        };
        let Some(fitting) = number.filter(|_| fits).and_then(|n| T::try_from(n).ok()) else {
            self.out_of_bounds(key, &kind, value.span());
            return None;
        };
        Some(At { value: fitting, span: value.span() })
    }

    /// A number within the spec's bounds, written with or without a fraction.
    pub(crate) fn number_if(&mut self, key: &'static str) -> Option<At<f64>> {
        let kind = self.key_spec(key).kind;
        let value = self.value(key)?;
        self.number_in(key, &kind, value)
    }

    /// Reads a table of names and numbers, sorted by name.
    pub(super) fn numbers<T>(
        &mut self,
        key: &'static str,
        name: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Vec<(At<T>, At<f64>)> {
        let Kind::Map(form, of) = self.key_spec(key).kind else {
            return Vec::new();
        };
        let mut read = Vec::new();
        for Entry { name: at, written, value } in self.entries(key, |text| Ok(text.to_owned())) {
            let number = self.number_in(written, of, value);
            let name = name(&at.value).map(|value| At { value, span: at.span.clone() });
            match (name, number) {
                (Ok(name), Some(number)) => read.push((name, number)),
                (Ok(_), None) => {}
                (Err(wrong), _) => self.report_wrong(key, &Kind::Text(form), at.span, wrong),
            }
        }
        read
    }

    fn number_in(&self, key: &str, kind: &Kind, value: &Spanned<DeValue<'_>>) -> Option<At<f64>> {
        let read = match value.get_ref() {
            DeValue::Float(float) => float.as_str().replace('_', "").parse::<f64>().ok(),
            other => integer(other).map(|n| n as f64),
        };
        let (Some(read), Kind::Number { min, max }) = (read, *kind) else {
            self.problems.report(mismatch(key, kind, value));
            return None;
        };
        if (min..=max).contains(&read) {
            return Some(At { value: read, span: value.span() });
        }
        self.out_of_bounds(key, kind, value.span());
        None
    }

    /// A number within the spec's bounds; the default if absent or wrong.
    pub(crate) fn number(&mut self, key: &'static str) -> At<f64> {
        self.number_if(key).unwrap_or_else(|| {
            let value = match self.key_spec(key).absent {
                Absent::Number(default) => default,
                _ => 0.0,
            };
            At { value, span: self.span_of(key) }
        })
    }

    /// `true` or `false`; the default if absent or wrong.
    pub(crate) fn boolean(&mut self, key: &'static str) -> bool {
        let default = matches!(self.key_spec(key).absent, Absent::Boolean(true));
        let Some(value) = self.value(key) else {
            return default;
        };
        if let DeValue::Boolean(read) = value.get_ref() {
            return *read;
        }
        self.mismatch(key, value);
        default
    }

    /// A duration within the spec's bounds; the default if absent or wrong.
    pub(crate) fn duration(&mut self, key: &'static str) -> At<Duration> {
        self.duration_if(key).unwrap_or_else(|| {
            let value = match self.key_spec(key).absent {
                Absent::Duration(default) => default,
                _ => Duration::ZERO,
            };
            At { value, span: self.span_of(key) }
        })
    }

    /// A duration within the spec's bounds.
    pub(crate) fn duration_if(&mut self, key: &'static str) -> Option<At<Duration>> {
        let kind = self.key_spec(key).kind;
        let read = self.text(key, units::duration)?;
        match kind {
            Kind::Duration { min, max } if !(min..=max).contains(&read.value) => {
                self.out_of_bounds(key, &kind, read.span);
                None
            }
            _ => Some(read),
        }
    }

    /// A size in bytes within the spec's bounds; the default if absent or wrong.
    pub(crate) fn size(&mut self, key: &'static str) -> At<u64> {
        self.size_if(key).unwrap_or_else(|| {
            let value = match self.key_spec(key).absent {
                Absent::Size(default) => default,
                _ => 0,
            };
            At { value, span: self.span_of(key) }
        })
    }

    /// A size in bytes within the spec's bounds: text with a unit, or a plain number.
    pub(crate) fn size_if(&mut self, key: &'static str) -> Option<At<u64>> {
        let kind = self.key_spec(key).kind;
        let value = self.value(key)?;
        let bytes = match integer(value.get_ref()).map(u64::try_from) {
            Some(Ok(bytes)) => bytes,
            Some(Err(_)) => {
                self.out_of_bounds(key, &kind, value.span());
                return None;
            }
            None => self.parse(key, &kind, value, units::size)?.value,
        };
        match kind {
            Kind::Size { min, max } if !(min..=max).contains(&bytes) => {
                self.out_of_bounds(key, &kind, value.span());
                None
            }
            _ => Some(At { value: bytes, span: value.span() }),
        }
    }

    fn out_of_bounds(&self, key: &str, kind: &Kind, span: Span) {
        let label = match kind.bounds() {
            Some(bounds) => format!("must be {bounds}"),
            None => format!("must be {}", kind.words()),
        };
        if let Kind::OneOf(_) = kind {
            let title = format!("`{key}` must be {}", kind.words());
            self.problems.report(Diagnostic::error(title, span, "not one of them"));
            return;
        }
        self.problems.report(Diagnostic::error(format!("`{key}` is out of bounds"), span, label));
    }
}

/// TOML integers of every radix, as far as they fit.
pub(crate) fn integer(value: &DeValue<'_>) -> Option<i128> {
    let DeValue::Integer(integer) = value else {
        return None;
    };
    // A number that does not fit is out of all bounds, and reported so.
    let digits = integer.as_str().replace('_', "");
    Some(i128::from_str_radix(&digits, integer.radix()).unwrap_or(i128::MAX))
}
