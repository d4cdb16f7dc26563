//! docs/rules.md is made of the rules' own pages, and docs/kernel-settings.md of the settings':
//! `UPDATE_EXPECT=1` rewrites both.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Write as _;
use std::path::Path;

use diagnose::rules::Rule;
use diagnose::sysctl::{Machine, Setting};

const RULES: &str = "\
# Rules

`weir doctor` and `weir serve` apply these rules to what the kernel counts. `weir serve` also applies \
them to its own traffic. Each finding names its rule; `weir doctor --explain RULE` prints that rule's page \
in a terminal.

A finding has a severity. A **note** is worth knowing and needs no action. **Advice** suggests an \
improvement. A **warning** means that something costs performance now, or soon will. **Critical** means \
that traffic is being lost now. With a warning or a critical finding, `weir doctor` ends with exit code 1.

A finding also has a certainty: *certain*, *likely* (the usual explanation of the figures) or *possible* \
(one of several explanations). If something could not be checked, the report says so and gives the reason.

Rules compare two or more samples. Each network namespace has its own counters, so the doctor checks each \
container separately. Processors, memory and the neighbour tables belong to the whole machine. \
[doctor-situations.md](doctor-situations.md) shows which faults the rules find in real situations.

<!-- What follows is generated: UPDATE_EXPECT=1 cargo test -p weir-diagnose -->
";

const SETTINGS: &str = "\
# Kernel settings

What Weir knows about the kernel's network settings. `weir doctor sysctl` reports those in use that \
differ from the default, or reviews a file; `weir doctor --explain NAME` prints a \
setting's page.

Defaults are those of Linux 6.18; where older kernels differ, the page says so, and `weir doctor` uses the \
default of the running kernel. A dash: computed from the machine's memory, or set by the distribution.

<!-- What follows is generated: UPDATE_EXPECT=1 cargo test -p weir-diagnose -->
";

fn rules() -> String {
    let mut out = RULES.to_owned();
    out.push_str("\n| rule | what it finds |\n|---|---|\n");
    for rule in Rule::all() {
        let name = rule.name();
        let _ = writeln!(out, "| [`{name}`](#{name}) | {} |", rule.page().summary);
    }
    for rule in Rule::all() {
        let _ = write!(out, "\n## `{}`\n\n{}", rule.name(), rule.page());
    }
    out
}

fn settings() -> String {
    let machine = Machine::usual();
    let mut out = SETTINGS.to_owned();
    out.push_str("\n| setting | unit | default | what it is |\n|---|---|---|---|\n");
    for setting in Setting::all() {
        let name = setting.name;
        let default = match setting.default_on(&machine).as_deref() {
            None => "–".to_owned(),
            Some("") => "empty".to_owned(),
            Some(default) => default.to_owned(),
        };
        let anchor = name.replace('.', "");
        let summary = setting.page().summary;
        let unit = setting.unit.name();
        let _ = writeln!(out, "| [`{name}`](#{anchor}) | {unit} | {default} | {summary} |");
    }
    for setting in Setting::all() {
        let _ = write!(out, "\n## `{}`\n\n{}", setting.name, setting.page());
    }
    out
}

fn is_current(name: &str, current: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, current).unwrap();
    } else {
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(found == current, "docs/{name} is old: UPDATE_EXPECT=1 rewrites it");
    }
}

#[test]
fn the_rule_book_is_current() {
    is_current("rules.md", &rules());
}

#[test]
fn the_book_of_settings_is_current() {
    is_current("kernel-settings.md", &settings());
}

/// Readers of these pages are solving a problem.
#[test]
fn every_rule_has_a_page_with_its_parts() {
    for rule in Rule::all() {
        let (name, page) = (rule.name(), rule.page());
        assert!(page.summary.ends_with('.'), "{name}: {}", page.summary);
        assert!((30..=140).contains(&page.summary.len()), "{name}: {}", page.summary);
        let titles: Vec<&str> = page.sections.iter().map(|one| one.title.as_str()).collect();
        for title in ["When", "Why", "What to do"] {
            assert!(titles.contains(&title), "{name}: no {title}");
        }
        for section in &page.sections {
            assert!(section.text.ends_with('.'), "{name}: {}", section.text);
            assert_eq!(section.text.matches('`').count() % 2, 0, "{name}: {}", section.text);
        }
    }
}

/// Pages point at rules that exist.
#[test]
fn a_rule_leads_back_from_its_name() {
    for rule in Rule::all() {
        assert_eq!(Rule::by_name(rule.name()).map(Rule::name), Some(rule.name()));
    }
    assert_eq!(Rule::by_name("listener-overflow").map(Rule::name), Some("listener_overflow"));
    assert!(Rule::by_name("nothing").is_none());
    assert_eq!(Rule::nearest("listener_overflo"), Some("listener_overflow"));
}
