//! Redirects of all requests of an Ingress, and of some.

use super::annotations::{Annotations, shown};
use crate::ir::filter::{PathChange, Redirect};
use crate::resolve::route::syntax;

/// What annotations state about redirects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Redirects {
    /// Where all requests go.
    pub all: Option<Redirect>,
    /// Where requests for `/` go.
    pub root: Option<Redirect>,
    /// Whether requests without TLS go to the same host with TLS: for hosts with TLS.
    pub to_tls: bool,
    /// The same for all hosts.
    pub to_tls_always: bool,
    /// Whether the same host with or without `www.` is redirected to the one that is stated.
    pub www: bool,
}

/// Reads them.
pub fn read(annotations: &mut Annotations<'_>) -> Redirects {
    // Weir's redirects keep the path as it is.
    annotations.flag("preserve-trailing-slash");
    let to_tls = annotations.flag("ssl-redirect").unwrap_or(true);
    let to_tls_always = annotations.is_on("force-ssl-redirect");
    let www = annotations.is_on("from-to-www-redirect");
    let root = annotations.text("app-root").and_then(|text| match syntax::path("The path", text) {
        Ok(path) => Some(Redirect { path: Some(PathChange::Full(path)), ..redirect(302) }),
        Err(problem) => {
            annotations.invalid("app-root", &format!("is invalid: {}", problem.message));
            None
        }
    });
    let permanent = status(annotations, "permanent-redirect-code", 301);
    let temporal = status(annotations, "temporal-redirect-code", 302);
    let mut redirects = Redirects { all: None, root, to_tls, to_tls_always, www };
    // As in ingress-nginx, a temporary redirect precedes a permanent one.
    for (name, status) in [("temporal-redirect", temporal), ("permanent-redirect", permanent)] {
        let Some(url) = annotations.text(name) else { continue };
        match target(url) {
            Ok(to) => {
                redirects.all.get_or_insert(Redirect { status, ..to });
            }
            Err(why) => annotations.refuse(name, &format!("({}) {why}", shown(url))),
        }
    }
    redirects
}

fn status(annotations: &mut Annotations<'_>, name: &str, default: u16) -> u16 {
    let Some(code) = annotations.number(name, 300..=308) else { return default };
    let known = [301, 302, 303, 307, 308].into_iter().find(|one| u32::from(*one) == code);
    known.unwrap_or_else(|| {
        annotations.unsupported(name, &format!("is {code}. Use 301, 302, 303, 307 or 308"));
        default
    })
}

/// Returns a redirect to the same address.
pub fn redirect(status: u16) -> Redirect {
    Redirect { scheme: None, hostname: None, path: None, port: None, status }
}

/// Returns the redirect to the same host with TLS.
pub fn to_tls() -> Redirect {
    // Like ingress-nginx's: the method stays.
    Redirect { scheme: Some("https".to_owned()), ..redirect(308) }
}

/// Reads a URL, perhaps with `$request_uri` at its end, or a path.
fn target(url: &str) -> Result<Redirect, String> {
    let (url, keeps_path) = match url.strip_suffix("$request_uri") {
        Some(url) => (url, true),
        None => (url, false),
    };
    let path = |text: &str| match (keeps_path, text) {
        (true, "") => Ok(None),
        (true, _) => Err("has a path before $request_uri".to_owned()),
        (false, "") => Ok(Some(PathChange::Full("/".to_owned()))),
        (false, text) if text.contains('$') => Err("has a variable".to_owned()),
        (false, text) => match syntax::path("The path", text) {
            Ok(path) => Ok(Some(PathChange::Full(path))),
            Err(_) => {
                Err("has a path with characters that are not supported, or a query".to_owned())
            }
        },
    };
    let Some((scheme, rest)) = url.split_once("://") else {
        if !url.starts_with('/') {
            return Err("is not a URL like https://example.com/path".to_owned());
        }
        return Ok(Redirect { path: path(url)?, ..redirect(302) });
    };
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        known @ ("http" | "https") => known.to_owned(),
        "$scheme" => return Err("has a variable. Name the scheme".to_owned()),
        _ => return Err("has a scheme other than http and https".to_owned()),
    };
    let (authority, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match authority.split_once(':') {
        None => (authority, None),
        Some((host, port)) => {
            let port = port.parse().ok().filter(|port: &u16| *port != 0);
            (host, Some(port.ok_or("has an invalid port")?))
        }
    };
    let host = syntax::exact_host("The host", &host.to_ascii_lowercase())
        .map_err(|_| "has no host that is a name".to_owned())?;
    Ok(Redirect {
        scheme: Some(scheme),
        hostname: Some(host),
        path: path(rest)?,
        port,
        status: 302,
    })
}

/// Returns the other name of a host: with `www.`, or without it.
pub fn other_name(host: &str) -> String {
    host.strip_prefix("www.").map_or_else(|| format!("www.{host}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_urls_without_variables() {
        for (url, expected) in [
            ("https://example.com", Some("https example.com None /")),
            ("https://example.com/a", Some("https example.com None /a")),
            ("HTTP://Example.com:8080/a", Some("http example.com 8080 /a")),
            ("https://example.com$request_uri", Some("https example.com None same")),
            ("/login", Some("None None None /login")),
            ("example.com", None),
            ("https://example.com/a$request_uri", None),
            ("https://$host/a", None),
            ("$scheme://example.com/", None),
            ("https://example.com/a?b=c", None),
            ("ftp://example.com", None),
            ("https://example.com/\r\nSet-Cookie: a=b", None),
            ("https://user@example.com/", None),
            ("https://example.com:0/", None),
        ] {
            let found = target(url).ok().map(|to| {
                let path = match to.path {
                    None => "same".to_owned(),
                    Some(PathChange::Full(path) | PathChange::Prefix(path)) => path,
                };
                let text = |part: Option<String>| part.unwrap_or_else(|| "None".to_owned());
                let port = text(to.port.map(|port| port.to_string()));
                format!("{} {} {port} {path}", text(to.scheme), text(to.hostname))
            });
            assert_eq!(found.as_deref(), expected, "{url}");
        }
    }
}
