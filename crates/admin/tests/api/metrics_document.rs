//! docs/metrics.md names every family, as `/metrics` itself describes it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::rig::Api;

/// A row per family, made from what is exposed when everything that can be there is.
fn table(exposition: &str) -> String {
    let mut out = "\n| family | kind | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for family in exposition.split("# TYPE ").skip(1) {
        let mut lines = family.lines();
        let (name, kind) = lines.next().unwrap().split_once(' ').unwrap();
        let help = lines.next().unwrap().strip_prefix(&format!("# HELP {name} ")).unwrap();
        let sample = lines.next().unwrap_or_else(|| panic!("{name} has no sample here"));
        let inside = sample.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}'));
        let labels: Vec<String> = inside
            .into_iter()
            .flat_map(|(labels, _)| labels.split("\","))
            .map(|label| format!("`{}`", label.split_once('=').unwrap().0))
            .collect();
        writeln!(out, "| `{name}` | {kind} | {} | {help} |", labels.join(", ")).unwrap();
    }
    out
}

/// `UPDATE_EXPECT=1` rewrites the table.
#[test]
fn the_documentation_is_current() {
    const MARK: &str =
        "<!-- What follows is generated: UPDATE_EXPECT=1 cargo test -p weir-admin -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let text = fs::read_to_string(&path).unwrap();
    let (start, written) = text.split_once(MARK).expect("the mark in docs/metrics.md");
    let api = Api::start();
    // Something that has a sample only sometimes.
    api.post("/api/v1/routes/api.example.com%2Flistings/maintenance", r#"{"on": true}"#);
    let current = table(&api.get("/metrics").body);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, format!("{start}{MARK}{current}")).unwrap();
    } else {
        assert!(written == current, "docs/metrics.md is old: UPDATE_EXPECT=1 rewrites it");
    }
}
