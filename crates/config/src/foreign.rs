//! Recognises a file that is not TOML at all: another program's configuration, YAML or JSON.
//! Reports that in one sentence instead of a syntax error for each line.

use crate::diagnostic::{Diagnostic, Span};

/// Sections of HAProxy's configuration, which begin at the start of a line (HAProxy's
/// configuration manual, section 2).
const HAPROXY_SECTIONS: &[&str] = &[
    "global",
    "defaults",
    "frontend",
    "backend",
    "listen",
    "peers",
    "resolvers",
    "userlist",
    "mailers",
    "cache",
    "ring",
    "program",
    "http-errors",
    "fcgi-app",
];

/// Blocks of nginx's configuration.
const NGINX_BLOCKS: &[&str] =
    &["http", "server", "upstream", "events", "stream", "location", "map", "types"];

/// A file counts as foreign if it has this many times more foreign lines than lines of TOML.
const FOREIGN_PER_TOML_LINE: usize = 3;

/// Returns what the file is instead of TOML. `None`: it is TOML with mistakes, as far as can be
/// determined. Called only for text that is not valid TOML.
pub(crate) fn recognise(text: &str) -> Option<Diagnostic> {
    let lines = Lines::of(text);
    let (what, at) = json(text)
        .map(|at| ("JSON", at))
        .or_else(|| lines.haproxy().map(|at| ("an HAProxy configuration", at)))
        .or_else(|| lines.nginx().map(|at| ("an nginx configuration", at)))
        .or_else(|| lines.yaml().map(|at| ("YAML", at)))?;
    Some(Diagnostic::error(format!("this is {what}; Weir reads TOML"), at, ""))
}

/// TOML never begins with a brace.
fn json(text: &str) -> Option<Span> {
    let body = text.trim_start_matches('\u{feff}').trim_start();
    let at = text.len() - body.len();
    let inside = body.strip_prefix('{')?.trim_start();
    inside.starts_with(['"', '}']).then_some(at..at + 1)
}

/// The significant lines of a text: neither empty nor comments.
struct Lines<'t> {
    /// The start of each, and its text without trailing white space.
    lines: Vec<(usize, &'t str)>,
    /// How many look like TOML: `[heading]` or `key = value`.
    toml: usize,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let mut lines = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let shown = line.trim_end();
            if !shown.is_empty() && !shown.trim_start().starts_with('#') {
                lines.push((start, shown));
            }
            start += line.len();
        }
        let toml = lines.iter().filter(|(_, line)| is_toml(line)).count();
        Lines { lines, toml }
    }

    /// Returns the first line that `is` recognises, if there are enough to make the file foreign.
    fn mostly(&self, is: impl Fn(&str) -> bool) -> Option<Span> {
        let mut recognised = self.lines.iter().filter(|(_, line)| is(line));
        let (start, first) = recognised.next()?;
        let count = 1 + recognised.count();
        (count >= 2 && count > self.toml.saturating_mul(FOREIGN_PER_TOML_LINE))
            .then(|| span_of(*start, first))
    }

    fn haproxy(&self) -> Option<Span> {
        let (start, line) = self.lines.iter().find(|(_, line)| is_haproxy_section(line))?;
        // Below a section every line is HAProxy syntax.
        let others = self.lines.len() - self.toml;
        (others > self.toml.saturating_mul(FOREIGN_PER_TOML_LINE)).then(|| span_of(*start, line))
    }

    fn nginx(&self) -> Option<Span> {
        let is_block = |line: &str| {
            let word = line.split_whitespace().next().unwrap_or_default();
            line.ends_with('{') && NGINX_BLOCKS.contains(&word.trim_end_matches('{'))
        };
        self.lines.iter().find(|(_, line)| is_block(line))?;
        self.mostly(|line| line.ends_with([';', '{']) || line.trim() == "}")
    }

    fn yaml(&self) -> Option<Span> {
        self.mostly(is_yaml)
    }
}

fn span_of(start: usize, line: &str) -> Span {
    let indent = line.len() - line.trim_start().len();
    start + indent..start + line.len()
}

fn is_toml(line: &str) -> bool {
    let line = line.trim_start();
    if line.starts_with('[') {
        return true;
    }
    let key = |c: char| c.is_ascii_alphanumeric() || "_-.\"' ".contains(c);
    line.split_once('=').is_some_and(|(before, _)| {
        let before = before.trim_end();
        !before.is_empty() && before.chars().all(key) && before.split(' ').count() == 1
    })
}

/// Only `global` and `defaults` may have no name.
fn is_haproxy_section(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let known = !line.starts_with(char::is_whitespace)
        && words.next().is_some_and(|word| HAPROXY_SECTIONS.contains(&word));
    let alone = matches!(line, "global" | "defaults");
    known && (alone || words.next().is_some()) && !line.ends_with([';', '{', ':'])
}

/// `---`, `key:`, `key: value`, `- item`.
fn is_yaml(line: &str) -> bool {
    let line = line.trim_start();
    if line == "---" || line == "-" || line.starts_with("- ") {
        return true;
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./\"'".contains(c);
    line.split_once(':').is_some_and(|(key, rest)| {
        !key.is_empty() && key.chars().all(plain) && (rest.is_empty() || rest.starts_with(' '))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_programs_are_distinguished_from_toml_with_mistakes() {
        for (text, what) in [
            ("global\n  maxconn 10\n", Some("an HAProxy configuration")),
            (
                "# x\nfrontend web\n  bind :80\n  log global\n  mode http\n  env = x\n",
                Some("an HAProxy configuration"),
            ),
            ("http {\n  server {\n    listen 80;\n  }\n}\n", Some("an nginx configuration")),
            ("---\nstatic_resources:\n  - a: b\n", Some("YAML")),
            ("\u{feff}\n{ \"a\": 1 }", Some("JSON")),
            // TOML with mistakes.
            ("global\n[[listener]]\naddress = \"x\"\n", None),
            ("zone: a\n", None),
            ("zone: a\nworkers: 2\n[[listener]]\naddress = \"x\"\n", None),
            ("{ bind = 1 }", None),
            ("workers 4;\n", None),
            ("", None),
        ] {
            let title = recognise(text).map(|found| found.title);
            let expected = what.map(|what| format!("this is {what}; Weir reads TOML"));
            assert_eq!(title, expected, "{text:?}");
        }
    }
}
