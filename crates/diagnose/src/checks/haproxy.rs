//! The checks that a configuration file of HAProxy asks for.
//!
//! Reads what says who is checked how often and how: the sections `global`, `defaults`, `backend`
//! and `listen`; in them `server`, `server-template`, `default-server`, `option …chk` and
//! `http-check send`. All else is passed over. Names and values follow HAProxy's configuration
//! manual. What cannot be known (environment variables, files of servers' states, resolvers) is
//! said in the notes.

mod server;
mod words;

use std::collections::BTreeMap;

use self::server::ServerOptions;
use self::words::{shorten, split};
use super::{CHECKS_MAX, Check, Checks};

/// No configuration is longer; what is beyond is not read, and a note says so.
const LINES_MAX: usize = 500_000;
/// Notes that are kept; there may be one for every line.
const NOTES_MAX: usize = 50;
/// Servers that one template may make.
const TEMPLATE_MAX: u64 = 10_000;

/// The checks that `text`, a configuration file of HAProxy, asks for.
///
/// # Errors
/// A sentence, when the text holds no section of HAProxy at all.
pub fn of_haproxy(text: &str) -> Result<Checks, String> {
    let mut reader = Reader { processes: 1, ..Reader::default() };
    for (at, line) in text.lines().enumerate() {
        if at >= LINES_MAX {
            reader.note(at, "the file is longer than what is read; the rest is left out");
            break;
        }
        reader.line(at + 1, &split(line));
    }
    reader.end_section();
    if !reader.has_section {
        let what = "this is no configuration of HAProxy: no global, defaults, frontend, listen or \
                    backend section";
        return Err(what.to_owned());
    }
    let (left_out, mut notes) = (reader.left_out, reader.notes);
    if left_out > 0 {
        let left_out = crate::words::plural(left_out, "check");
        notes.push(format!("{left_out} beyond the first {CHECKS_MAX} are left out."));
    }
    Ok(Checks { checks: reader.checks, processes: reader.processes, is_shared: false, notes })
}

/// What a section says about checks, and what its servers inherit.
#[derive(Clone, Debug, Default)]
struct Settings {
    /// `default-server`.
    server: ServerOptions,
    /// What the check does: `connect` unless an option says otherwise.
    kind: Option<String>,
    /// `http-check send`.
    send: Option<String>,
}

#[derive(Debug, Default)]
enum Section {
    #[default]
    Other,
    Global,
    Defaults(String),
    /// `backend` or `listen`, by name.
    Backend(String),
}

#[derive(Debug)]
struct Server {
    line: usize,
    endpoint: String,
    count: u64,
    options: ServerOptions,
}

#[derive(Debug, Default)]
struct Reader {
    section: Section,
    settings: Settings,
    /// Of the section under way: what a server is checked by may stand below it.
    servers: Vec<Server>,
    /// `defaults` by name; the nameless, or last, one under "".
    defaults: BTreeMap<String, Settings>,
    processes: u64,
    checks: Vec<Check>,
    notes: Vec<String>,
    left_out: u64,
    has_section: bool,
}

impl Reader {
    fn line(&mut self, number: usize, words: &[String]) {
        let Some(first) = words.first() else { return };
        let name = words.get(1).cloned().unwrap_or_default();
        match first.as_str() {
            "global" => self.begin(Section::Global, Settings::default()),
            "defaults" => {
                let settings = self.inherited(words);
                self.begin(Section::Defaults(name), settings);
            }
            "backend" | "listen" => {
                let settings = self.inherited(words);
                self.begin(Section::Backend(name), settings);
            }
            "frontend" | "resolvers" | "peers" | "userlist" | "mailers" | "program" | "cache"
            | "ring" | "http-errors" | "fcgi-app" | "log-forward" | "crt-store" => {
                self.begin(Section::Other, Settings::default());
            }
            _ => self.setting(number, words),
        }
    }

    fn begin(&mut self, section: Section, settings: Settings) {
        self.end_section();
        self.has_section = true;
        (self.section, self.settings) = (section, settings);
    }

    /// What a new section begins with: the `defaults` that it names by `from`, else the last.
    fn inherited(&mut self, words: &[String]) -> Settings {
        self.end_section();
        let from = words.iter().position(|word| word == "from").and_then(|at| words.get(at + 1));
        let name = from.map_or("", String::as_str);
        // A `defaults` that names none begins from nothing.
        if words.first().is_some_and(|word| word == "defaults") && from.is_none() {
            return Settings::default();
        }
        self.defaults.get(name).cloned().unwrap_or_default()
    }

    fn setting(&mut self, number: usize, words: &[String]) {
        if let (Section::Global, [first, value]) = (&self.section, words)
            && first == "nbproc"
        {
            self.processes = value.parse().unwrap_or(1);
            return;
        }
        if !matches!(self.section, Section::Defaults(_) | Section::Backend(_)) {
            return;
        }
        let rest = words.get(1..).unwrap_or_default();
        match words.first().map_or("", String::as_str) {
            "default-server" => self.options(number, rest),
            "option" => self.option(rest),
            // `no option httpchk`: back to a plain connect.
            "no" if rest
                .get(1)
                .is_some_and(|word| word.ends_with("chk") || word.ends_with("-check")) =>
            {
                self.settings.kind = None;
            }
            "http-check" if rest.first().is_some_and(|word| word == "send") => {
                self.settings.send = Some(server::sent(rest));
            }
            "server" | "server-template" => self.server(number, words),
            _ => {}
        }
    }

    fn options(&mut self, number: usize, words: &[String]) {
        for note in self.settings.server.read(words) {
            self.note(number, &note);
        }
    }

    /// `option httpchk GET /health`, `option tcp-check`, `option mysql-check` …
    fn option(&mut self, words: &[String]) {
        let Some(name) = words.first() else { return };
        let rest = words.get(1..).unwrap_or_default().join(" ");
        let kind = match name.as_str() {
            // HAProxy's default is OPTIONS /, and one word is the path.
            "httpchk" if rest.is_empty() => "OPTIONS /".to_owned(),
            "httpchk" if words.len() == 2 => format!("OPTIONS {rest}"),
            "httpchk" => shorten(&rest),
            "tcp-check" | "external-check" => name.clone(),
            other if other.ends_with("chk") || other.ends_with("-check") => other.to_owned(),
            _ => return,
        };
        self.settings.kind = Some(kind);
    }

    /// `server NAME ADDRESS[:PORT] …`, `server-template PREFIX NUMBER FQDN[:PORT] …`
    fn server(&mut self, number: usize, words: &[String]) {
        let is_template = words[0] == "server-template";
        let at = if is_template { 3 } else { 2 };
        let Some(address) = words.get(at) else {
            return self.note(number, "this server has no address; it is left out");
        };
        let mut options = self.settings.server.clone();
        for note in options.read(words.get(at + 1..).unwrap_or_default()) {
            self.note(number, &note);
        }
        let count = if is_template { server::template_count(&words[2]) } else { Some(1) };
        let Some(count) = count.filter(|&count| count <= TEMPLATE_MAX) else {
            return self.note(
                number,
                "the number of servers of this template is not understood; it is left out",
            );
        };
        if is_template && count > 1 && options.is_checked() {
            self.note(
                number,
                &format!(
                    "its {count} servers count as one endpoint each, by number; DNS may know fewer"
                ),
            );
        }
        if address.contains('$') {
            self.note(
                number,
                "its address comes from the environment, and counts by the variable's name",
            );
        }
        self.servers.push(Server { line: number, endpoint: address.clone(), count, options });
    }

    fn end_section(&mut self) {
        let section = std::mem::take(&mut self.section);
        let settings = std::mem::take(&mut self.settings);
        let servers = std::mem::take(&mut self.servers);
        match section {
            Section::Defaults(name) => {
                if !name.is_empty() {
                    self.defaults.insert(name, settings.clone());
                }
                self.defaults.insert(String::new(), settings);
            }
            Section::Backend(name) => {
                for server in servers {
                    self.checks_of(&name, &server, &settings);
                }
            }
            Section::Global | Section::Other => {}
        }
    }

    fn checks_of(&mut self, service: &str, server: &Server, settings: &Settings) {
        if !server.options.is_checked() {
            return;
        }
        let kind = server.options.kind(settings.kind.as_deref(), settings.send.as_deref());
        let Some(endpoint) = server.options.endpoint(&server.endpoint) else {
            return self.note(server.line, "its check has no port; it is left out");
        };
        for n in 1..=server.count {
            if self.checks.len() >= CHECKS_MAX {
                self.left_out = self.left_out.saturating_add(server.count - n + 1);
                return;
            }
            let endpoint =
                if server.count > 1 { format!("{endpoint} #{n}") } else { endpoint.clone() };
            self.checks.push(Check {
                service: service.to_owned(),
                endpoint,
                kind: kind.clone(),
                interval_ms: server.options.interval_ms(),
            });
        }
    }

    fn note(&mut self, line: usize, what: &str) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(format!("line {line}: {what}."));
        }
    }
}
