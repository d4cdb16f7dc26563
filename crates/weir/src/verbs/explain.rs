//! `weir explain`: prints the page of a cause or of a doctor rule, or lists all causes; says what happened in
//! the last minutes; or which route a request takes.

mod past;
mod route;

use std::fmt::Write as _;
use std::path::Path;

use diagnose::rules::Rule;
use model::{Cause, Fault, Page};

use super::bench::pages::{self, Own, PAGES};
use super::check::print;
use crate::flags::{Common, Exit, ExplainArgs, ExplainVerb};

/// Columns of text: what a terminal has at least, and what the eye follows.
const WIDTH: usize = 80;

pub(crate) fn run(args: &ExplainArgs, common: Common) -> Exit {
    if let Some(ExplainVerb::Route(args)) = &args.about {
        return route::run(args, common);
    }
    if let Some(last) = args.last {
        return past::of_balancer(last, args);
    }
    if let Some(file) = args.cause.as_deref().filter(|word| is_file(word)) {
        return past::of_file(Path::new(file), args.json);
    }
    if args.json {
        eprintln!("weir: --json needs --last or a file of `weir bundle`");
        return Exit::Mistake;
    }
    let colour = common.colours_stdout();
    let Some(word) = &args.cause else {
        return print(&(list(Cause::ALL, colour) + &list_of_bench(colour)));
    };
    if let Some(cause) = find(word) {
        return print(&page(cause, colour));
    }
    if let Some(own) = pages::find(&plain(word)) {
        return print(&page_of_bench(own, colour));
    }
    if let Some(rule) = Rule::by_name(&plain(word)) {
        return print(&diagnose::render::page(rule.name(), &rule.page(), WIDTH));
    }
    let answered: Vec<Cause> = match word.parse::<u16>() {
        Ok(status) => with_status(status),
        Err(_) => Vec::new(),
    };
    if !answered.is_empty() {
        return print(&list(&answered, colour));
    }
    eprintln!("weir: {}", unknown(word));
    Exit::Mistake
}

/// No cause and no rule has a slash or a dot in its name.
fn is_file(word: &str) -> bool {
    word.contains(['/', '.'])
}

/// As it stands in a log, or as a person would type it.
fn find(word: &str) -> Option<Cause> {
    Cause::from_name(&plain(word))
}

fn plain(word: &str) -> String {
    word.trim().to_ascii_lowercase().replace(['-', ' '], "_")
}

/// The causes that Weir answers with `status`.
fn with_status(status: u16) -> Vec<Cause> {
    let made = |cause: &Cause| match cause {
        // What a service's `when_full` may be.
        Cause::QueueFull | Cause::QueueWaitExceeded => matches!(status, 429 | 503),
        cause => cause.status() == status && status > 0,
    };
    Cause::ALL.iter().copied().filter(made).collect()
}

fn unknown(word: &str) -> String {
    // Whatever was typed or pasted: bounded, and nothing that moves a cursor.
    let shown: String = word.chars().take(60).flat_map(char::escape_debug).collect();
    let help = match meant(&plain(word)).as_slice() {
        [] => "`weir explain` lists all of them".to_owned(),
        [one] => format!("did you mean {one}?"),
        [start @ .., last] => format!("did you mean {} or {last}?", start.join(", ")),
    };
    format!("no cause and no rule has the name \"{shown}\"; {help}")
}

/// The names that were probably meant: the one that differs in a few letters, or all that `word`
/// is a part of.
fn meant(word: &str) -> Vec<&'static str> {
    let of_bench = || PAGES.iter().map(|page| page.name);
    let rules = || Rule::all().map(Rule::name);
    let names = || Cause::ALL.iter().map(|cause| cause.name()).chain(of_bench()).chain(rules());
    let errors_max = word.chars().count() / 3;
    let slip = names()
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .filter(|&(errors, _)| errors <= errors_max)
        .min_by_key(|&(errors, _)| errors);
    match slip {
        Some((_, name)) if !word.is_empty() => vec![name],
        _ if word.len() >= 3 => names().filter(|name| name.contains(word)).collect(),
        _ => Vec::new(),
    }
}

/// A line for each, by whose fault it is.
fn list(causes: &[Cause], colour: bool) -> String {
    let names = causes.iter().map(|cause| cause.name().len());
    let width = names.max().unwrap_or_default();
    let mut out = String::new();
    for &fault in Fault::ALL {
        let mut of = causes.iter().filter(|cause| cause.fault() == fault).peekable();
        if of.peek().is_none() {
            continue;
        }
        heading(&mut out, fault_heading(fault), colour);
        for cause in of {
            let status = match cause.status() {
                0 => "  -".to_owned(),
                status => status.to_string(),
            };
            // Writing into a String cannot fail.
            _ = writeln!(out, "  {:width$}  {status}  {}", cause.name(), cause.summary());
        }
    }
    out.push_str("\nThe number is the status code of Weir's own response, if it sends one.\n");
    out.push_str("`weir explain CAUSE` says why a cause usually happens and what to do.\n");
    out
}

fn fault_heading(fault: Fault) -> &'static str {
    match fault {
        Fault::None => "No one's fault",
        Fault::Client => "The client's fault",
        Fault::Server => "A server's fault",
        Fault::Network => "The network's fault",
        Fault::Balancer => "The balancer's fault",
        Fault::Configuration => "The configuration's fault",
    }
}

fn page(cause: Cause, colour: bool) -> String {
    let Page { what, why, remedy } = cause.page();
    let mut out = String::new();
    heading(&mut out, cause.name(), colour);
    let answered = match cause.status() {
        0 => "no response from Weir".to_owned(),
        status => format!("answered with {status}"),
    };
    _ = writeln!(out, "  fault: {}; {answered}", cause.fault().as_str());
    sections(&mut out, [&what, &why, &remedy], colour);
    out
}

fn page_of_bench(own: Own, colour: bool) -> String {
    let mut out = String::new();
    heading(&mut out, own.name, colour);
    _ = writeln!(out, "  {}; of `weir bench`", own.whose);
    sections(&mut out, [own.what, own.why, own.remedy], colour);
    out
}

fn sections(out: &mut String, texts: [&str; 3], colour: bool) {
    let titles = ["What happened", "Why it usually happens", "What to do"];
    for (title, text) in titles.into_iter().zip(texts) {
        heading(out, title, colour);
        wrap(text, out);
    }
}

/// What only a load generator says.
fn list_of_bench(colour: bool) -> String {
    let mut out = String::from("\n");
    let mut names = String::new();
    for page in PAGES {
        names.push_str(if names.is_empty() { "" } else { ", " });
        names.push_str(page.name);
    }
    let title = "Of `weir bench` alone: its own failures, and what can run out";
    _ = if colour { writeln!(out, "\u{1b}[1m{title}\u{1b}[0m") } else { writeln!(out, "{title}") };
    wrap(&names, &mut out);
    out
}

fn heading(out: &mut String, text: &str, colour: bool) {
    if !out.is_empty() {
        out.push('\n');
    }
    _ = if colour { writeln!(out, "\u{1b}[1m{text}\u{1b}[0m") } else { writeln!(out, "{text}") };
}

/// Appends `text` in indented lines of at most [`WIDTH`] columns, but for words longer than that.
/// What stands between backticks stays on one line, so that it can be copied.
fn wrap(text: &str, out: &mut String) {
    let mut column = 0;
    let mut quoted = false;
    let mut word = String::new();
    for part in text.split(' ') {
        if !word.is_empty() {
            word.push(' ');
        }
        word.push_str(part);
        quoted ^= part.matches('`').count() % 2 == 1;
        if quoted {
            continue;
        }
        let width = word.chars().count();
        if column == 0 || column + 1 + width > WIDTH {
            out.push_str(if column == 0 { "  " } else { "\n  " });
            column = 2 + width;
        } else {
            out.push(' ');
            column += 1 + width;
        }
        out.push_str(&word);
        word.clear();
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_byte_by_byte() {
        let expected = "\
connection_refused
  fault: server; answered with 502

What happened
  The server refused the connection. Its host is up and answers, but nothing
  listens on that port; or there is no Unix socket at that path, or Weir's user
  may not write to it.

Why it usually happens
  The process is not running, is still starting, or listens on another port or
  on 127.0.0.1 only. A firewall that rejects looks the same.

What to do
  On the server, `ss -ltn` shows what listens; for a Unix socket, `ls -l` shows
  who may connect. Start the process, or fix the server's `address`. With a
  `check` such a server is taken out before requests reach it.
";
        assert_eq!(page(Cause::ConnectionRefused, false), expected);
    }

    #[test]
    fn every_page_fits_a_terminal() {
        for &cause in Cause::ALL {
            for line in page(cause, false).lines() {
                assert!(line.chars().count() <= WIDTH, "{line}");
                assert_eq!(line.matches('`').count() % 2, 0, "{line}");
            }
        }
    }

    #[test]
    fn rules_of_the_doctor_are_found_and_no_cause_has_the_name_of_one() {
        for rule in Rule::all() {
            assert_eq!(find(rule.name()), None, "{}", rule.name());
            assert!(pages::find(rule.name()).is_none(), "{}", rule.name());
            assert_eq!(Rule::by_name(&plain(rule.name())).map(Rule::name), Some(rule.name()));
        }
        assert_eq!(meant("listener_overflwo"), ["listener_overflow"]);
    }

    #[test]
    fn what_bench_alone_says_is_explained_too() {
        for own in PAGES {
            for line in page_of_bench(*own, false).lines() {
                assert!(line.chars().count() <= WIDTH, "{line}");
                assert_eq!(line.matches('`').count() % 2, 0, "{line}");
            }
            assert!(list_of_bench(false).contains(own.name));
        }
        assert_eq!(meant("local_ports_exhaust"), ["local_ports_exhausted"]);
    }

    #[test]
    fn the_list_names_every_cause_once() {
        let list = list(Cause::ALL, false);
        for &cause in Cause::ALL {
            let start = format!("  {} ", cause.name());
            let lines: Vec<_> = list.lines().filter(|line| line.starts_with(&start)).collect();
            assert_eq!(lines.len(), 1, "{start}");
            assert!(lines[0].ends_with(cause.summary()), "{lines:?}");
        }
        assert!(list.starts_with("No one's fault\n  completed "), "{list}");
    }

    #[test]
    fn a_slip_finds_its_cause_and_a_stranger_finds_none() {
        for (word, names) in [
            ("connection_refuesd", &["connection_refused"][..]),
            ("conection_reset", &["connection_reset"]),
            ("refused", &["connection_refused", "http_stream_refused", "connects_refused"]),
            ("dns_eror", &["dns_error"]),
            ("dns", &["dns_error"]),
            ("banana", &[]),
            ("", &[]),
        ] {
            assert_eq!(meant(word), names, "{word}");
        }
        let all = "; did you mean connection_refused, http_stream_refused or connects_refused?";
        assert!(unknown("refused").ends_with(all));
        assert_eq!(find("Connection-Refused"), Some(Cause::ConnectionRefused));
        assert!(with_status(504).contains(&Cause::HttpResponseTimeout));
        assert!(with_status(503).contains(&Cause::QueueFull));
        assert!(with_status(0).is_empty() && with_status(200).is_empty());
    }

    #[test]
    fn what_was_typed_is_shown_harmless_and_bounded() {
        let said = unknown(&"\u{1b}[31m".repeat(100));
        assert!(!said.contains('\u{1b}') && said.len() < 700, "{said}");
    }

    /// What stands between backticks in a page: keys that exist, names of causes, members of the
    /// access log, or something to type.
    #[test]
    fn pages_name_only_configuration_keys_that_exist() {
        const ACCESS_LOG: &[&str] = &[
            "detail",
            "failed_attempts",
            "host",
            "path",
            "auth_ms",
            "queue_ms",
            "connect_ms",
            "first_byte_ms",
            "total_ms",
            "request_bytes",
            "response_bytes",
        ];
        const TOOLS: &[&str] = &["dig"];
        let schema = config::schema();
        let tables = schema["$defs"].as_object().unwrap();
        let mut keys: Vec<String> =
            schema["properties"].as_object().unwrap().keys().cloned().collect();
        for (table, spec) in tables {
            for key in spec["properties"].as_object().unwrap().keys() {
                let path = format!("{table}.{key}");
                // `in_flight_max`, `timeouts.connect`: from the table it stands in, or below.
                keys.extend(path.match_indices('.').map(|(at, _)| path[at + 1..].to_owned()));
            }
        }
        let mut checked = 0;
        for &cause in Cause::ALL {
            let Page { what, why, remedy } = cause.page();
            for quoted in
                [what, why, remedy].iter().flat_map(|text| text.split('`').skip(1).step_by(2))
            {
                let key = quoted.split(" = ").next().unwrap_or_default();
                if !key.bytes().all(|b| b.is_ascii_lowercase() || matches!(b, b'_' | b'.')) {
                    continue;
                }
                let known = keys.iter().any(|known| known == key)
                    || Cause::from_name(key).is_some()
                    || ACCESS_LOG.contains(&key)
                    || TOOLS.contains(&key);
                assert!(known, "{}: `{key}` is no key", cause.name());
                checked += 1;
            }
        }
        assert!(checked > 50, "{checked}");
    }
}
