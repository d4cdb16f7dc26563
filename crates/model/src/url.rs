//! URLs of peers that a configuration names.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::Uri;
use http::uri::PathAndQuery;

use crate::{Certificate, Material};

/// An `http` or `https` URL (RFC 9110 section 4.2), without user information.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpUrl {
    is_https: bool,
    authority: String,
    host: String,
    port: u16,
    target: String,
}

/// A server that Weir itself sends requests to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpPeer {
    /// Its URL.
    pub url: HttpUrl,
    /// The authorities that its certificate is verified by, PEM; `None`: the URL is not `https`.
    pub ca: Option<Material>,
    /// The certificate that Weir presents if it is asked for one.
    pub certificate: Option<Box<Certificate>>,
}

/// Why a text is no [`HttpUrl`]; displays as half a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrlError(&'static str);

impl HttpUrl {
    /// Returns whether it is `https`.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Returns host and port as written, for the Host field.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the host: a name, or an IP address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns it without its query, which may hold a secret, for logs and status pages.
    pub fn without_query(&self) -> String {
        let url = self.to_string();
        url.split('?').next().unwrap_or_default().to_owned()
    }

    /// Returns the port; that of the scheme by default.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether the host is this machine, so that what is exchanged with it crosses no network.
    pub fn is_of_this_machine(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        let is_loopback = address.is_ok_and(|address| address.is_loopback());
        is_loopback || self.host.eq_ignore_ascii_case("localhost")
    }

    /// Returns path and query, for the request line.
    pub fn target(&self) -> &str {
        &self.target
    }
}

impl TryFrom<&Uri> for HttpUrl {
    type Error = UrlError;

    fn try_from(uri: &Uri) -> Result<HttpUrl, UrlError> {
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(UrlError("it must begin with https://")),
        };
        let authority = uri.authority().ok_or(UrlError("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(UrlError("it must not have a user name or password"));
        }
        let host = authority.host();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err(UrlError("it names no host"));
        }
        let default = if is_https { 443 } else { 80 };
        // A colon without a port stands for the default (RFC 3986 section 3.2.3).
        let after_host = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        let port = match after_host.strip_prefix(':').unwrap_or(after_host) {
            "" => default,
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().ok().filter(|port| *port > 0).ok_or(UrlError("no such port"))?
            }
            _ => return Err(UrlError("no such port")),
        };
        let target = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        // An empty path is sent as "/" (RFC 9112 section 3.2.1).
        let root = if target.starts_with('/') { "" } else { "/" };
        Ok(HttpUrl {
            is_https,
            authority: authority.as_str().to_owned(),
            host: host.to_owned(),
            port,
            target: format!("{root}{target}"),
        })
    }
}

impl FromStr for HttpUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<HttpUrl, UrlError> {
        // The fragment is not sent, so it would mean nothing.
        if text.contains('#') {
            return Err(UrlError("it must not have a fragment (#)"));
        }
        HttpUrl::try_from(&Uri::from_str(text).map_err(|_| UrlError("it is not a URL"))?)
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.target)
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for UrlError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_host_port_and_target() {
        for (text, host, port, target) in [
            ("https://idp.example/keys?a=b", "idp.example", 443, "/keys?a=b"),
            ("http://idp.example", "idp.example", 80, "/"),
            ("http://idp.example?a=b", "idp.example", 80, "/?a=b"),
            ("http://idp.example:81?", "idp.example", 81, "/?"),
            ("https://[::1]:14000/dir", "::1", 14000, "/dir"),
            ("https://[2001:db8::1]", "2001:db8::1", 443, "/"),
            ("https://192.0.2.1:/x", "192.0.2.1", 443, "/x"),
            ("HTTPS://a.example/", "a.example", 443, "/"),
        ] {
            let url: HttpUrl = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((url.host(), url.port(), url.target()), (host, port, target), "{text}");
            assert_eq!(url.is_https(), !text.starts_with("http:"), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_asked_is_refused() {
        for text in [
            "",
            "/keys",
            "idp.example/keys",
            "ftp://idp.example/",
            "https://",
            "https:///keys",
            "https://user@idp.example/",
            "https://user:secret@idp.example/",
            "https://idp.example:99999/",
            "https://idp.example:0/",
            "https://idp.example:+1/",
            "https://[::1/dir",
            "https://::1/dir",
            "https://a b/",
            "https://a/\r\nx",
            "https://a/#keys",
        ] {
            assert!(text.parse::<HttpUrl>().is_err(), "{text}");
        }
    }
}
