//! Checks what an external source lists (service discovery): servers by the rules of
//! `[[service.NAME.server]]`, hosts and paths of routes by those of `[[route]]`.
//!
//! A source states every value as text, and its error goes into one line of a report. Unlike the
//! configuration, a source must not name files of this machine, so Unix sockets are refused.

use std::ops::RangeInclusive;

use model::{Address, HostPattern, PathMatch, ServerSpec, ServerTarget, UNIX_PREFIX};

use crate::defaults;
use crate::diagnostic::{Wrong, quote};
use crate::raw::{http, name, net, service};

/// The bounds of `weight`, as in the schema.
const WEIGHT: RangeInclusive<u16> = 0..=1_000;

/// The bounds of `in_flight_max`, as in the schema.
const IN_FLIGHT_MAX: RangeInclusive<u32> = 1..=u32::MAX;

/// A server as a source describes it: all values as text. `None`: the source does not state it.
#[derive(Clone, Copy, Debug)]
pub struct ServerTexts<'a> {
    /// Host and port: `10.0.1.5:8080`, `[::1]:8080`, `listings.internal:8080`.
    pub address: &'a str,
    /// Its zone.
    pub zone: Option<&'a str>,
    /// 0 to 1000; 1 if it is `None`.
    pub weight: Option<&'a str>,
    /// `true` or `false`.
    pub backup: Option<&'a str>,
    /// At least 1.
    pub in_flight_max: Option<&'a str>,
    /// 1 to 64 visible ASCII characters.
    pub version: Option<&'a str>,
}

/// Returns the server, if every value is valid as in `[[service.NAME.server]]`.
///
/// # Errors
/// The first value that is not valid, in one line: its key, the value (escaped, at most 60 characters)
/// and the problem.
pub fn listed_server(texts: &ServerTexts<'_>) -> Result<ServerSpec, String> {
    let weight = read("weight", texts.weight, |text| integer(text, WEIGHT))?;
    Ok(ServerSpec {
        target: target(texts.address)
            .map_err(|wrong| sentence("address", texts.address, &wrong))?,
        zone: read("zone", texts.zone, name)?,
        weight: weight.unwrap_or(defaults::WEIGHT as u16),
        backup: read("backup", texts.backup, boolean)?.unwrap_or(false),
        in_flight_max: read("in_flight_max", texts.in_flight_max, |text| {
            integer(text, IN_FLIGHT_MAX)
        })?,
        version: read("version", texts.version, service::version)?,
    })
}

/// Returns the host of a route, if it is valid as `host` of `[[route]]` and not `*`: a source does not publish
/// routes for every host.
///
/// # Errors
/// It is not valid, in one line: the text (escaped, at most 60 characters) and the problem.
pub fn listed_host(text: &str) -> Result<HostPattern, String> {
    let host = net::host_pattern(text).map_err(|wrong| sentence("host", text, &wrong))?;
    host.ok_or_else(|| format!("host {}: every host", quote(text)))
}

/// Returns the path of a route, if it is valid as `path` of `[[route]]`: a prefix on segment boundaries.
///
/// # Errors
/// As [`listed_host`].
pub fn listed_path(text: &str) -> Result<PathMatch, String> {
    http::path_prefix(text).map_err(|wrong| sentence("path", text, &wrong))
}

/// Returns the path of a route, if it is valid as `path_exact` of `[[route]]`.
///
/// # Errors
/// As [`listed_host`].
pub fn listed_path_exact(text: &str) -> Result<PathMatch, String> {
    http::path_exact(text).map(PathMatch::Exact).map_err(|wrong| sentence("path", text, &wrong))
}

/// Returns a canonical path as [`listed_path`] and [`listed_path_exact`] read it.
pub fn written_path(path: &str) -> String {
    match path {
        "" => "/".to_owned(),
        _ => path.replace('?', "%3F").replace('#', "%23"),
    }
}

fn read<T>(
    key: &str,
    text: Option<&str>,
    parse: impl FnOnce(&str) -> Result<T, Wrong>,
) -> Result<Option<T>, String> {
    text.map(|text| parse(text).map_err(|wrong| sentence(key, text, &wrong))).transpose()
}

/// The help of `wrong` is left out: it tells what to write into a configuration.
fn sentence(key: &str, text: &str, wrong: &Wrong) -> String {
    format!("{key} {}: {}", quote(text), wrong.why)
}

fn target(text: &str) -> Result<ServerTarget, Wrong> {
    let refused = || Wrong::new("a Unix socket of this machine, which a source must not name");
    if text.starts_with(UNIX_PREFIX) {
        return Err(refused());
    }
    match net::server_target(text)? {
        ServerTarget::Address(Address::Unix(_)) => Err(refused()),
        target => Ok(target),
    }
}

fn boolean(text: &str) -> Result<bool, Wrong> {
    text.parse().map_err(|_| Wrong::new("neither \"true\" nor \"false\""))
}

/// Digits only: no sign, no spaces.
fn integer<T>(text: &str, bounds: RangeInclusive<T>) -> Result<T, Wrong>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits
        .and_then(|digits| digits.parse().ok())
        .filter(|number| bounds.contains(number))
        .ok_or_else(|| {
            Wrong::new(format!("not an integer from {} to {}", bounds.start(), bounds.end()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: ServerTexts<'_> = ServerTexts {
        address: "10.0.1.5:8080",
        zone: None,
        weight: None,
        backup: None,
        in_flight_max: None,
        version: None,
    };

    #[test]
    fn a_server_is_checked_as_in_the_configuration() {
        let with = |key: &str, text: &'static str| match key {
            "address" => ServerTexts { address: text, ..PLAIN },
            "zone" => ServerTexts { zone: Some(text), ..PLAIN },
            "weight" => ServerTexts { weight: Some(text), ..PLAIN },
            "backup" => ServerTexts { backup: Some(text), ..PLAIN },
            "in_flight_max" => ServerTexts { in_flight_max: Some(text), ..PLAIN },
            _ => ServerTexts { version: Some(text), ..PLAIN },
        };
        for (key, quoted, texts) in [
            ("address", true, &["10.0.1.5:8080", "[::1]:80", "[::ffff:10.0.0.1]:80", "A.b:1"][..]),
            ("address", true, &["10.0.1.5", "::1:8080", "a:0", "a:65536", "", "/x", "http://a"]),
            ("zone", true, &["eu-west-1a", "rack/7", "", "a b", "é", "a\u{0}"]),
            ("weight", false, &["0", "1", "1000", "1001", "-1", "x", "1.5", "99999999999"]),
            ("backup", false, &["true", "false", "yes", "1"]),
            ("in_flight_max", false, &["1", "4294967295", "0", "4294967296", "-3"]),
            ("version", true, &["2.8.1", "", "a b", "é"]),
        ] {
            for text in texts {
                let value =
                    if quoted { toml::Value::from(*text).to_string() } else { (*text).to_owned() };
                let address =
                    toml::Value::from(if key == "address" { text } else { PLAIN.address });
                let mut file = format!(
                    "[[listener]]\naddress = \"127.0.0.1:80\"\n[[route]]\nservice = \"a\"\n\
                     [[service.a.server]]\naddress = {address}\n"
                );
                if key != "address" {
                    file.extend([key, " = ", &value, "\n"]);
                }
                let configured = crate::check(&file, "weir.toml", &())
                    .map(|checked| checked.snapshot.services[0].servers[0].clone());
                let listed = listed_server(&with(key, text));
                assert_eq!(listed.is_ok(), configured.is_ok(), "{file}{listed:?}");
                if let (Ok(listed), Ok(configured)) = (listed, configured) {
                    assert_eq!(listed, configured, "{file}");
                }
            }
        }
    }

    #[test]
    fn hosts_and_paths_are_checked_as_in_a_route() {
        let hosts =
            ["Web.example.", "*.a.example", "10.0.0.1", "[::1]", "", "a:80", "*a", ".a", "é"];
        let paths = ["/", "/a/", "/%61/ü", "/a%2fb", "/a*", "/a/..", "/a?b", "/a\n", "a", ""];
        let hosts = hosts.map(|text| ("host", text, listed_host(text).map(Some)));
        for (key, text, listed) in hosts {
            let route = route(key, text).map(|matches| matches.host);
            assert_eq!(listed.ok(), route, "{key} {text}");
        }
        for text in paths {
            let routes = ["path", "path_exact"].map(|key| route(key, text).map(|one| one.path));
            let listed = [listed_path(text), listed_path_exact(text)].map(Result::ok);
            assert_eq!(listed, routes, "{text}");
        }
        assert!(listed_host("*").is_err());
        let long = listed_path(&format!("/\u{1b}{}", "x".repeat(10_000))).unwrap_err();
        assert!(!long.contains(char::is_control) && long.len() < 500, "{long}");
    }

    /// Returns the conditions of a configured route with this value, if it is valid.
    fn route(key: &str, text: &str) -> Option<model::RouteMatch> {
        let value = toml::Value::from(text);
        let file = format!(
            "[[listener]]\naddress = \"127.0.0.1:1\"\n[[route]]\ndeny = 404\n{key} = {value}\n"
        );
        let checked = crate::check(&file, "weir.toml", &()).ok()?;
        checked.snapshot.routes.first().map(|route| route.matches.clone())
    }

    #[test]
    fn a_source_names_no_file_of_this_machine() {
        for address in ["unix:/run/app.sock", "unix:", "unix:80", "/run/app.sock", "./a:80"] {
            assert!(listed_server(&ServerTexts { address, ..PLAIN }).is_err(), "{address}");
        }
    }

    #[test]
    fn an_error_is_one_bounded_line_with_the_value() {
        let long = "\n\u{1b}[31m\"\u{202e}".repeat(1_000);
        let of = |texts| listed_server(&texts).unwrap_err();
        for error in [
            of(ServerTexts { address: &long, ..PLAIN }),
            of(ServerTexts { address: "a:\n", ..PLAIN }),
            of(ServerTexts { zone: Some(&long), ..PLAIN }),
            of(ServerTexts { weight: Some(&long), ..PLAIN }),
            of(ServerTexts { version: Some(&long), ..PLAIN }),
        ] {
            assert!(!error.contains(char::is_control) && error.len() < 800, "{error}");
        }
        assert_eq!(
            of(ServerTexts { weight: Some("1001"), ..PLAIN }),
            "weight \"1001\": not an integer from 0 to 1000"
        );
        assert_eq!(
            of(ServerTexts { address: "10.0.1.5", ..PLAIN }),
            "address \"10.0.1.5\": the port is missing"
        );
        // A sign and spaces are not digits, although Rust would read the sign.
        for text in ["+1", " 1", "1 ", "", "1_000", "0x1", "١"] {
            assert!(listed_server(&ServerTexts { weight: Some(text), ..PLAIN }).is_err(), "{text}");
        }
    }
}
