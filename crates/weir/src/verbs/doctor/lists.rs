//! `weir doctor listeners` and `weir doctor sockets`: current listeners and sockets as tables.

use diagnose::facts::{Facts, Known, NamespaceSample};
use serde_json::{Map, Value, json};

use super::super::check::{print, print_json};
use super::facts::{Settings, at_once};
use crate::flags::{Common, Exit, ListArgs};
use crate::render;

pub(super) fn listeners(args: &ListArgs, common: Common) -> Exit {
    show(args, common, render::doctor::listeners, |sample| json!({ "listeners": sample.listeners }))
}

pub(super) fn sockets(args: &ListArgs, common: Common) -> Exit {
    show(args, common, render::doctor::sockets, |sample| json!({ "sockets": sample.sockets }))
}

fn show(
    args: &ListArgs,
    common: Common,
    text: fn(&Facts, bool) -> String,
    part: fn(&NamespaceSample) -> Value,
) -> Exit {
    let facts = match at_once(args, Settings::OfRules) {
        Ok(facts) => facts,
        Err(error) => return error.tell(),
    };
    if args.json {
        return print_json(&json!({
            "namespaces": by_namespace(&facts, part),
            "namespaces_left_out": facts.namespaces_left_out,
        }));
    }
    print(&text(&facts, common.colours_stdout()))
}

/// The newest sample's `part` of each namespace.
fn by_namespace(facts: &Facts, part: fn(&NamespaceSample) -> Value) -> Value {
    let each = facts.namespaces.iter().map(|namespace| {
        let mut row = Map::new();
        row.insert("inode".to_owned(), json!(namespace.inode));
        row.insert("name".to_owned(), json!(namespace.name));
        row.insert("is_own".to_owned(), json!(namespace.is_own));
        let newest = namespace.samples.last();
        if let Some(Value::Object(figures)) = newest.map(part) {
            row.extend(figures);
        } else {
            let unknown: Known<()> = Known::unknown("no sample");
            row.insert("samples".to_owned(), json!(unknown));
        }
        Value::Object(row)
    });
    each.collect()
}
