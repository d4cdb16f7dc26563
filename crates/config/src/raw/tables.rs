//! Reads tables below a table: one, several, named.

use toml::de::DeValue;

use super::table::{Table, mismatch};
use crate::diagnostic::{At, Diagnostic};
use crate::schema::names;
use crate::schema::spec::Kind;

impl<'t> Table<'t> {
    /// Returns the table below `key`.
    pub(crate) fn table(&mut self, key: &'static str) -> Option<Table<'t>> {
        let kind = self.key_spec(key).kind;
        let value = self.value(key)?;
        match (value.get_ref(), kind) {
            (DeValue::Table(toml), Kind::Table(spec)) => Some(self.below(toml, value.span(), spec)),
            (DeValue::Table(toml), Kind::Either([Kind::Table(spec), ..])) => {
                Some(self.below(toml, value.span(), spec))
            }
            _ => {
                self.mismatch(key, value);
                None
            }
        }
    }

    /// Returns the tables of the list below `key`, or the one that may stand there instead.
    pub(crate) fn tables(&mut self, key: &'static str) -> Vec<Table<'t>> {
        let kind = self.key_spec(key).kind;
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let (Kind::Tables(spec) | Kind::OneOrMore(&Kind::Table(spec))) = kind else {
            return Vec::new();
        };
        let problems = self.problems;
        match value.get_ref() {
            DeValue::Array(items) => items
                .iter()
                .filter_map(|item| {
                    if let DeValue::Table(toml) = item.get_ref() {
                        return Some(self.below(toml, item.span(), spec));
                    }
                    problems.report(mismatch(key, &Kind::Table(spec), item));
                    None
                })
                .collect(),
            // Read as if it were the only one, so that its own mistakes are found as well.
            DeValue::Table(toml) => {
                if matches!(kind, Kind::Tables(_)) {
                    problems.report(names::single_table(spec, key, value.span()));
                }
                vec![self.below(toml, value.span(), spec)]
            }
            _ => {
                self.mismatch(key, value);
                Vec::new()
            }
        }
    }

    /// Returns the named tables below `key`, in order of name; and whether these are all.
    pub(crate) fn named_tables(
        &mut self,
        key: &'static str,
    ) -> (Vec<(At<&'t str>, Table<'t>)>, bool) {
        let kind = self.key_spec(key).kind;
        let Some(value) = self.value(key) else {
            return (Vec::new(), true);
        };
        let (DeValue::Table(entries), Kind::NamedTables(spec)) = (value.get_ref(), kind) else {
            let label = match value.get_ref() {
                DeValue::Array(_) => "tables without a name",
                _ => "not a table",
            };
            let title = format!("a {key} needs a name");
            self.problems.report(
                Diagnostic::error(title, value.span(), label)
                    .help(format!("write [{key}.NAME] with a name of your choice")),
            );
            return (Vec::new(), false);
        };
        let mut read = Vec::new();
        let mut nameless = false;
        for (name, value) in entries {
            let at = At { value: name.get_ref().as_ref(), span: name.span() };
            match value.get_ref() {
                DeValue::Table(toml) => {
                    let name = Some(at.value);
                    read.push((at, Table::new(toml, value.span(), spec, name, self.problems)));
                }
                // `[service]` with a service's own keys: the name is missing. Reported once.
                _ if spec.key(at.value).is_some() => {
                    if !nameless {
                        let title = format!("a {key} needs a name");
                        self.problems.report(
                            Diagnostic::error(title, at.span, format!("a key of one {key}")).help(
                                format!("write [{key}.NAME] with a name of your choice above it"),
                            ),
                        );
                    }
                    nameless = true;
                }
                _ => {
                    nameless = true;
                    self.problems.report(mismatch(at.value, &Kind::Table(spec), value));
                }
            }
        }
        (read, !nameless)
    }
}
