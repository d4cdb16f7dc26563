//! `weir doctor --explain`: the page of a rule or of a kernel setting.

use diagnose::render;
use diagnose::rules::Rule;
use diagnose::sysctl::{Machine, Setting};

use super::super::check::print;
use super::facts;
use crate::flags::Exit;

/// Columns of text.
const WIDTH: usize = 80;

pub(super) fn run(name: &str) -> Exit {
    let name = name.trim();
    if let Some(rule) = Rule::by_name(name) {
        return print(&render::page(rule.name(), &rule.page(), WIDTH));
    }
    // Its last part alone names a setting too: tcp_mem.
    let by_end = || {
        let known = Setting::nearest(name)?;
        (known.rsplit('.').next() == Some(name)).then(|| Setting::by_name(known))?
    };
    if let Some(setting) = Setting::by_name(name).or_else(by_end) {
        let machine = facts::begin("own", facts::Settings::OfRules)
            .map_or_else(|_| Machine::usual(), |here| Machine::of(&here.facts().host));
        return print(&render::setting_page(setting, &machine, WIDTH));
    }
    // Whatever was typed or pasted: bounded, and nothing that moves a cursor.
    let shown: String = name.chars().take(60).flat_map(char::escape_debug).collect();
    let help = match Rule::nearest(name).or_else(|| Setting::nearest(name)) {
        Some(known) => format!("did you mean {known}?"),
        None => "docs/rules.md lists all of them".to_owned(),
    };
    eprintln!("weir: no rule and no setting known has the name \"{shown}\"; {help}");
    Exit::Mistake
}
