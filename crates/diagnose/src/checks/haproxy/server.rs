//! What a server line of HAProxy says about its check.

use super::words::{shorten, time_ms};

/// Time between two checks where nothing is said (configuration manual, `inter`).
const INTERVAL_MS: u64 = 2_000;

/// What is said by `default-server`, then by the server's own line: the later one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerOptions {
    check: bool,
    disabled: bool,
    /// Takes the verdict of another server, and runs no check.
    track: bool,
    interval_ms: Option<u64>,
    port: Option<String>,
    address: Option<String>,
    ssl: bool,
    send_proxy: bool,
    sni: Option<String>,
}

impl ServerOptions {
    /// Reads what follows a server's address; what is not understood, as notes.
    pub(super) fn read(&mut self, words: &[String]) -> Vec<String> {
        let mut notes = Vec::new();
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "check" => self.check = true,
                "no-check" => self.check = false,
                "disabled" => self.disabled = true,
                "enabled" => self.disabled = false,
                "track" => {
                    self.track = true;
                    words.next();
                }
                "inter" => match words.next().and_then(time_ms) {
                    Some(ms) => self.interval_ms = Some(ms),
                    None => notes.push("its `inter` is not understood; 2 s are assumed".to_owned()),
                },
                "port" => self.port = words.next().map(str::to_owned),
                "addr" => self.address = words.next().map(str::to_owned),
                "ssl" | "check-ssl" => self.ssl = true,
                "no-check-ssl" | "no-ssl" => self.ssl = false,
                "check-send-proxy" => self.send_proxy = true,
                "check-sni" => self.sni = words.next().map(str::to_owned),
                _ => {}
            }
        }
        notes
    }

    /// Whether checks of its own are run. A disabled server is not checked until it is enabled.
    pub(super) fn is_checked(&self) -> bool {
        self.check && !self.track && !self.disabled
    }

    pub(super) fn interval_ms(&self) -> u64 {
        self.interval_ms.unwrap_or(INTERVAL_MS)
    }

    /// Where checks go: `addr` and `port` where they are given, else the server's own.
    pub(super) fn endpoint(&self, server: &str) -> Option<String> {
        let (host, port) = host_and_port(server);
        let (host, port) = match &self.address {
            Some(address) => {
                let (other, own) = host_and_port(address);
                (other, own.or(port))
            }
            None => (host, port),
        };
        let port = self.port.as_deref().or(port);
        // A Unix socket has none.
        if host.starts_with('/') || host.starts_with("unix@") {
            return Some(host.to_owned());
        }
        Some(format!("{host}:{}", port?))
    }

    /// What the check does, in words that are equal for equal checks.
    pub(super) fn kind(&self, option: Option<&str>, send: Option<&str>) -> String {
        let mut kind = match (option, send) {
            (Some(option), Some(send)) => format!("{option}, {send}"),
            (Some(option), None) => option.to_owned(),
            (None, _) => "connect".to_owned(),
        };
        if self.ssl {
            kind.push_str(" over TLS");
        }
        if let Some(sni) = &self.sni {
            kind.push_str(" for ");
            kind.push_str(sni);
        }
        if self.send_proxy {
            kind.push_str(" with a PROXY header");
        }
        shorten(&kind)
    }
}

/// `10.0.0.1:80`, `[::1]:80`, `::1:80` (HAProxy takes the last colon), `name`, `ipv4@name:80`.
fn host_and_port(text: &str) -> (&str, Option<&str>) {
    let text =
        ["ipv4@", "ipv6@"].iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
    match text.rsplit_once(':') {
        // A name with a port that is a number, a relative one (`+1`), or a variable.
        Some((host, port)) if !port.is_empty() && !port.contains(']') => (host, Some(port)),
        Some((host, "")) => (host, None),
        _ => (text, None),
    }
}

/// How many servers `3` or `1-5` stands for.
pub(super) fn template_count(text: &str) -> Option<u64> {
    match text.split_once('-') {
        None => text.parse().ok(),
        Some((from, to)) => {
            let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
            to.checked_sub(from)?.checked_add(1)
        }
    }
}

/// `http-check send meth GET uri /x hdr Host y`, in few words.
pub(super) fn sent(words: &[String]) -> String {
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    shorten(&words.join(" "))
}
