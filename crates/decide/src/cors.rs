//! Cross-origin resource sharing: what a response tells browsers about pages of other origins (Fetch
//! standard, "CORS protocol").
//!
//! Only an origin that the route lists is ever repeated, so nothing of a request is reflected
//! unchecked. The other values are the configuration's, whatever the request asks for: browsers
//! compare. The one exception is `*` with credentials, which means nothing to browsers: a preflight
//! from an allowed origin gets the method and the fields that it asks for.

use model::Cors;

use crate::route::RequestView;

/// The longest `Origin` that is compared, in bytes: a scheme, a host name (at most 253 bytes, RFC 1035
/// section 3.1) and a port. A longer one is not allowed.
const ORIGIN_MAX_BYTES: usize = 300;

/// The longest list of requested fields that is repeated, in bytes.
const HEADERS_MAX_BYTES: usize = 4096;

/// What a response says about its readers.
#[derive(Clone, Copy, Debug)]
pub struct Verdict<'a> {
    rules: &'a Cors,
    /// The value of `Access-Control-Allow-Origin`; `None`: the origin is not allowed, or there is none.
    allowed: Option<&'a [u8]>,
    /// What the request asks for, if it is a preflight.
    asked: Option<Asked<'a>>,
}

/// What a preflight asks for.
#[derive(Clone, Copy, Debug)]
struct Asked<'a> {
    method: &'a [u8],
    headers: Option<&'a [u8]>,
}

/// Decides what the response to `request` says.
pub fn verdict<'a, R: RequestView>(rules: &'a Cors, request: &'a R) -> Verdict<'a> {
    let mut origins = request.field_values("origin");
    let origin = origins.next();
    let only = origin.filter(|origin| origin.len() <= ORIGIN_MAX_BYTES && origins.next().is_none());
    let allowed = if rules.allows_any_origin() {
        Some(&b"*"[..])
    } else {
        only.filter(|origin| rules.origins.iter().any(|known| known.covers(origin)))
    };
    let method = request.field("access-control-request-method");
    let asked = method
        .filter(|_| request.method() == "OPTIONS" && origin.is_some())
        .map(|method| Asked { method, headers: request.field("access-control-request-headers") });
    Verdict { rules, allowed, asked }
}

impl Verdict<'_> {
    /// Returns whether the request asks, on behalf of a later one, what is allowed.
    pub fn is_preflight(&self) -> bool {
        self.asked.is_some()
    }

    /// Passes the name and value of each field of the response to `put`.
    pub fn fields(&self, mut put: impl FnMut(&str, &[u8])) {
        let Verdict { rules, allowed, asked } = self;
        // Caches keep the responses to different origins apart, also that to a request without one.
        if !rules.allows_any_origin() {
            put("Vary", b"Origin");
        }
        let Some(origin) = allowed else { return };
        put("Access-Control-Allow-Origin", origin);
        if rules.credentials {
            put("Access-Control-Allow-Credentials", b"true");
        }
        let mut put_list = |name: &str, list: &[u8]| {
            if !list.is_empty() {
                put(name, list);
            }
        };
        // Browsers ignore it after a preflight, but the Gateway API wants it there, too.
        put_list("Access-Control-Expose-Headers", rules.expose.as_bytes());
        let Some(Asked { method, headers }) = asked else { return };
        let repeats = |list: &str| list == "*" && rules.credentials;
        let methods = if repeats(&rules.methods) {
            Some(*method).filter(|method| is_list(method))
        } else {
            None
        };
        put_list("Access-Control-Allow-Methods", methods.unwrap_or(rules.methods.as_bytes()));
        let headers = headers.filter(|headers| repeats(&rules.headers) && is_list(headers));
        put_list("Access-Control-Allow-Headers", headers.unwrap_or(rules.headers.as_bytes()));
        if let Some(max_age) = rules.max_age {
            put("Access-Control-Max-Age", max_age.as_secs().to_string().as_bytes());
        }
    }
}

/// Returns whether this is a list of tokens (RFC 9110 section 5.6), of a bounded length.
fn is_list(value: &[u8]) -> bool {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    value.len() <= HEADERS_MAX_BYTES
        && value.iter().all(|byte| is_token(byte) || b", \t".contains(byte))
}

/// Returns whether this is the name of a field of the CORS protocol, which no response has besides
/// those of its verdict.
pub fn is_reserved(name: &[u8]) -> bool {
    const START: &[u8] = b"access-control-";
    name.get(..START.len()).is_some_and(|start| start.eq_ignore_ascii_case(START))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::time::Duration;

    use model::CorsOrigin;

    use super::*;

    struct Request {
        method: &'static str,
        fields: Vec<(&'static str, String)>,
    }

    impl RequestView for Request {
        fn method(&self) -> &str {
            self.method
        }
        fn host(&self) -> &'static str {
            ""
        }
        fn path(&self) -> &'static str {
            "/"
        }
        fn query(&self) -> Option<&str> {
            None
        }
        fn field_names(&self) -> impl Iterator<Item = &[u8]> {
            self.fields.iter().map(|(name, _)| name.as_bytes())
        }
        fn field(&self, name: &str) -> Option<&[u8]> {
            self.field_values(name).next()
        }
        fn field_values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
            let named = self.fields.iter().filter(move |(known, _)| *known == name);
            named.map(|(_, value)| value.as_bytes())
        }
        fn cookie_values(&self, _: &str) -> impl Iterator<Item = &[u8]> {
            std::iter::empty()
        }
    }

    const APP: &str = "https://app.example.com";

    fn rules(origins: &[&str]) -> Cors {
        Cors {
            origins: origins.iter().map(|text| CorsOrigin::parse(text).expect(text)).collect(),
            methods: "GET, PUT".into(),
            headers: "content-type".into(),
            expose: "x-total".into(),
            credentials: false,
            max_age: Some(Duration::from_secs(600)),
        }
    }

    fn request(origins: &[&str]) -> Request {
        let fields = origins.iter().map(|origin| ("origin", (*origin).to_owned())).collect();
        Request { method: "GET", fields }
    }

    fn preflight(origins: &[&str]) -> Request {
        let mut request = Request { method: "OPTIONS", ..request(origins) };
        request.fields.push(("access-control-request-method", "PUT".into()));
        request
    }

    /// The fields of the response, one per line.
    fn said(rules: &Cors, request: &Request) -> String {
        let mut text = String::new();
        verdict(rules, request).fields(|name, value| {
            let value = std::str::from_utf8(value).expect("a value of the configuration");
            let _ = writeln!(text, "{}={value}", name.trim_start_matches("Access-Control-"));
        });
        text
    }

    #[test]
    fn a_listed_origin_gets_the_fields() {
        let mut rules = rules(&[APP, "https://*.example.net"]);
        let allowed = format!("Vary=Origin\nAllow-Origin={APP}\n");
        assert_eq!(said(&rules, &request(&[APP])), format!("{allowed}Expose-Headers=x-total\n"));
        let lists = "Expose-Headers=x-total\nAllow-Methods=GET, PUT\nAllow-Headers=content-type\nMax-Age=600\n";
        assert_eq!(said(&rules, &preflight(&[APP])), format!("{allowed}{lists}"));
        rules.credentials = true;
        let allowed = format!("{allowed}Allow-Credentials=true\n");
        assert_eq!(said(&rules, &request(&[APP])), format!("{allowed}Expose-Headers=x-total\n"));
        let none = String::new;
        let bare =
            Cors { methods: none(), headers: none(), expose: none(), max_age: None, ..rules };
        assert_eq!(said(&bare, &preflight(&[APP])), allowed);
    }

    #[test]
    fn with_credentials_a_preflight_gets_what_it_asks_for_in_place_of_a_wildcard() {
        let any = Cors {
            methods: "*".into(),
            headers: "*".into(),
            expose: String::new(),
            credentials: true,
            max_age: None,
            ..rules(&[APP])
        };
        let asks = |headers: &str| {
            let mut request = preflight(&[APP]);
            request.fields.push(("access-control-request-headers", headers.to_owned()));
            request
        };
        let says = |rules: &Cors, headers: &str| {
            let text = said(rules, &asks(headers));
            text.lines()
                .filter(|line| line.starts_with("Allow-"))
                .skip(1)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let credentials = "Allow-Credentials=true Allow-Methods=PUT";
        assert_eq!(says(&any, "x-a, x-b"), format!("{credentials} Allow-Headers=x-a, x-b"));
        // What is no list of names is not repeated.
        for wrong in ["x-a: y", "<x>", "x\u{1}", &"x".repeat(HEADERS_MAX_BYTES + 1)] {
            assert_eq!(says(&any, wrong), format!("{credentials} Allow-Headers=*"), "{wrong}");
        }
        let without = Cors { credentials: false, ..any };
        assert_eq!(says(&without, "x-a"), "Allow-Methods=* Allow-Headers=*");
    }

    #[test]
    fn other_origins_get_no_fields() {
        let long = format!("https://{}.example.net", "a".repeat(ORIGIN_MAX_BYTES));
        let rules = Cors { credentials: true, ..rules(&[APP, "https://*.example.net"]) };
        for origins in [
            &[][..],
            &["null"],
            &[""],
            &["https://evil.test"],
            &["https://app.example.com, https://app.example.com"],
            &[APP, APP],
            &[APP, "https://evil.test"],
            &[&long],
        ] {
            for request in [request(origins), preflight(origins)] {
                assert_eq!(said(&rules, &request), "Vary=Origin\n", "{origins:?}");
            }
        }
    }

    #[test]
    fn any_origin_is_a_constant_without_credentials() {
        let mut rules = rules(&[APP, "*"]);
        for origins in [&[][..], &["https://evil.test"], &["null"], &[APP]] {
            let expected = "Allow-Origin=*\nExpose-Headers=x-total\n";
            assert_eq!(said(&rules, &request(origins)), expected, "{origins:?}");
        }
        // No configuration has both; if one had, then at least not for pages without an origin.
        rules.credentials = true;
        assert!(!said(&rules, &request(&[])).contains("Allow-"));
    }

    #[test]
    fn only_a_question_of_a_browser_is_a_preflight() {
        let rules = rules(&[APP]);
        let is_preflight = |request: &Request| verdict(&rules, request).is_preflight();
        assert!(
            is_preflight(&preflight(&[APP])) && is_preflight(&preflight(&["https://evil.test"]))
        );
        assert!(!is_preflight(&preflight(&[])));
        assert!(!is_preflight(&Request { method: "GET", ..preflight(&[APP]) }));
        assert!(!is_preflight(&Request { method: "options", ..preflight(&[APP]) }));
        assert!(!is_preflight(&Request { method: "OPTIONS", ..request(&[APP]) }));
    }

    #[test]
    fn fields_of_the_protocol_are_known_by_name() {
        for name in ["Access-Control-Allow-Origin", "access-control-allow-private-network"] {
            assert!(is_reserved(name.as_bytes()), "{name}");
        }
        for name in ["", "access-control", "x-access-control-allow-origin", "vary"] {
            assert!(!is_reserved(name.as_bytes()), "{name}");
        }
    }
}
