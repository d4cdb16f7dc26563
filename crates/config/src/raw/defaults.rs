//! Reads `[defaults.listener]`, `[defaults.service]` and `[defaults.route]`.

use std::collections::HashSet;

use toml::de::{DeTable, DeValue};

use super::table::{DefaultKeys, Table};
use super::{listener, route, service};
use crate::diagnostic::{At, Diagnostic, Problems, Severity, Span, quote};
use crate::schema::names::{self, Renamed};
use crate::schema::spec::{Kind, TableSpec};

/// The keys that apply to every table of a kind that does not have them.
#[derive(Clone, Copy, Default)]
pub(super) struct Defaults<'t> {
    pub(super) listener: Option<DefaultKeys<'t>>,
    pub(super) service: Option<DefaultKeys<'t>>,
    pub(super) route: Option<DefaultKeys<'t>>,
}

impl<'t> Defaults<'t> {
    pub(super) fn read(mut table: Table<'t>) -> Defaults<'t> {
        let read = Defaults {
            listener: below(&mut table, "listener", |table| drop(listener::read(table))),
            service: below(&mut table, "service", |table| {
                // Names nothing: what is read is dropped.
                drop(service::read(At { value: "", span: table.span.clone() }, table));
            }),
            route: below(&mut table, "route", |table| drop(route::read(table))),
        };
        table.finish();
        read
    }
}

/// Returns the table of defaults below `key`, after reporting the mistakes in it.
fn below<'t>(
    table: &mut Table<'t>,
    key: &'static str,
    read: impl FnOnce(Table<'_>),
) -> Option<DefaultKeys<'t>> {
    let value = table.value(key)?;
    let Kind::Defaults { heading, of, without } = table.key_spec(key).kind else { return None };
    let DeValue::Table(toml) = value.get_ref() else {
        table.mismatch(key, value);
        return None;
    };
    let problems = table.problems;
    let mut places = Vec::new();
    for (key, value) in toml.iter().filter(|(key, _)| !without.contains(&key.get_ref().as_ref())) {
        places.push(key.span());
        places_of(value, &mut places);
    }
    for (key, value) in toml {
        if without.contains(&key.get_ref().as_ref()) {
            let title = format!("{} has no default", quote(key.get_ref()));
            let label = format!("each {} has its own", of.heading);
            let known = of.keys.iter().map(|key| key.name).filter(|name| !without.contains(name));
            let help = format!("keys with defaults: {}", known.collect::<Vec<_>>().join(", "));
            problems.report(Diagnostic::error(title, key.span(), label).help(help));
        } else if let Some(renamed) = Renamed::from_old(of, key.get_ref()) {
            let new = toml.get_key_value(renamed.new).map(|(key, _)| key.span());
            problems.report(renamed.diagnostic(key.span(), new));
        } else if of.key(key.get_ref()).is_none() {
            let place = names::Place { spec: of, name: None };
            let (mut diagnostic, _) = names::unknown_key(place, key, value.get_ref());
            diagnostic.title = format!("unknown key {} in {heading}", quote(key.get_ref()));
            problems.report(diagnostic);
        }
    }
    report_values(toml, value.span(), of, read, &places, problems);
    problems.are_defaults(places);
    Some(DefaultKeys { toml, without })
}

/// Reads the defaults as if they were a table of their kind, and reports mistakes in single values, which
/// are mistakes even if no table has this default. What does not fit together is reported where a table
/// has all of it.
fn report_values<'t>(
    toml: &'t DeTable<'t>,
    span: Span,
    of: &'static TableSpec,
    read: impl FnOnce(Table<'_>),
    places: &[Span],
    problems: &Problems,
) {
    let places: HashSet<&Span> = places.iter().collect();
    let alone = problems.alone();
    read(Table::quiet(toml, span.clone(), of, None, &alone));
    for diagnostic in alone.into_sorted() {
        let at = &diagnostic.primary.span;
        let is_of_value = *at != span && places.contains(at);
        if diagnostic.severity == Severity::Error && diagnostic.others.is_empty() && is_of_value {
            problems.report(diagnostic);
        }
    }
}

/// Collects the positions of all keys and values.
fn places_in(table: &DeTable<'_>, places: &mut Vec<Span>) {
    for (key, value) in table {
        places.push(key.span());
        places_of(value, places);
    }
}

fn places_of(value: &toml::Spanned<DeValue<'_>>, places: &mut Vec<Span>) {
    places.push(value.span());
    match value.get_ref() {
        DeValue::Table(table) => places_in(table, places),
        DeValue::Array(items) => items.iter().for_each(|item| places_of(item, places)),
        _ => {}
    }
}
