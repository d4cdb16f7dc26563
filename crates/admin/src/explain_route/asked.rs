//! The request that is asked about: from the query of the API to a request head.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use decide::client_address;
use model::{HttpUrl, Listener, visible};
use wire::http1::{HeadLimits, Parsed, RequestHead, is_token, parse_request};

/// The longest URL, in bytes.
const URL_MAX_BYTES: usize = 8 * 1024;
/// Maximum number of fields.
const QUERY_FIELDS_MAX: usize = 64;

/// A question: a request, and where it comes from.
#[derive(Clone, Debug)]
pub struct RouteQuery {
    pub(super) url: HttpUrl,
    method: String,
    /// The name or address of the listener; `None`: the one that fits the URL best.
    pub(super) listener: Option<String>,
    /// The client's address, if it is known.
    client: Option<IpAddr>,
    fields: Vec<(String, String)>,
}

impl RouteQuery {
    /// Reads the parameters of the API: `url`, and optionally `method`, `listener`, `client` and any
    /// number of `field`, each as `Name: value`.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub fn read(parameters: &[(String, String)]) -> Result<RouteQuery, String> {
        let single = |wanted: &str| {
            let mut all = parameters.iter().filter(|(name, _)| name == wanted);
            let first = all.next().map(|(_, value)| value.as_str());
            match all.next() {
                Some(_) => Err(format!("{wanted} is given more than once")),
                None => Ok(first),
            }
        };
        const KNOWN: [&str; 5] = ["url", "method", "listener", "client", "field"];
        if let Some((name, _)) = parameters.iter().find(|(name, _)| !KNOWN.contains(&&**name)) {
            let name = visible(name, 100);
            return Err(format!("there is no parameter \"{name}\", only {}", KNOWN.join(", ")));
        }
        let url = single("url")?.ok_or("url is missing: the URL of the request")?;
        let method = single("method")?.unwrap_or("GET");
        if !is_token(method.as_bytes()) {
            return Err(format!("\"{}\" is no method", visible(method, 100)));
        }
        let fields = parameters.iter().filter(|(name, _)| name == "field");
        if fields.clone().count() > QUERY_FIELDS_MAX {
            return Err(format!("there are more than {QUERY_FIELDS_MAX} fields"));
        }
        Ok(RouteQuery {
            url: read_url(url)?,
            method: method.to_owned(),
            listener: single("listener")?.map(str::to_owned),
            client: single("client")?.map(read_client).transpose()?,
            fields: fields.map(|(_, text)| read_field(text)).collect::<Result<_, _>>()?,
        })
    }

    /// Returns the request's head as `listener` parses it.
    pub(super) fn head(&self, listener: &Listener) -> Result<RequestHead, String> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.url.target());
        let is_host = |name: &str| name.eq_ignore_ascii_case("host");
        if !self.fields.iter().any(|(name, _)| is_host(name)) {
            // Writing to a String cannot fail.
            _ = write!(text, "Host: {}\r\n", self.url.authority());
        }
        for (name, value) in &self.fields {
            _ = write!(text, "{name}: {value}\r\n");
        }
        text.push_str("\r\n");
        let limits = HeadLimits::of_client(listener.head_max_bytes);
        let mut head = RequestHead::default();
        match parse_request(text.as_bytes(), &limits, &mut head) {
            Ok(Parsed::Complete { .. }) => Ok(head),
            Ok(Parsed::Partial) => Err("the request has no end".to_owned()),
            Err(error) => Err(format!(
                "listener {} would refuse this request with {}: {error}",
                listener.name,
                error.status()
            )),
        }
    }

    /// Returns the client's address, and whether conditions see it: the given one, or if `listener`
    /// trusts it as a proxy, the one that the fields of `head` name.
    pub(super) fn client_by(
        &self,
        listener: &Listener,
        head: &RequestHead,
    ) -> Option<(IpAddr, bool)> {
        let client = self.client?;
        let Listener { trusted, client_address, .. } = listener;
        if !trusted.contains(client) {
            return Some((client, true));
        }
        let peer = SocketAddr::new(client, 0);
        let (found, how) = client_address::find(peer, trusted, client_address, head);
        Some((found.ip(), how.is_known()))
    }
}

fn read_url(text: &str) -> Result<HttpUrl, String> {
    if text.len() > URL_MAX_BYTES {
        return Err(format!("the URL is longer than {URL_MAX_BYTES} bytes"));
    }
    // A client does not send the fragment.
    let sent = text.split('#').next().unwrap_or_default();
    let scheme = sent.split("://").next().unwrap_or_default();
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err("the URL: it must begin with http:// or https://".to_owned());
    }
    sent.parse().map_err(|error| format!("the URL: {error}"))
}

fn read_client(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("client \"{}\" is no IP address", visible(text, 100)))
}

/// Reads `Name: value`.
fn read_field(text: &str) -> Result<(String, String), String> {
    let shown = || visible(text, 100);
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| format!("field \"{}\" is not of the form Name: value", shown()))?;
    if !is_token(name.as_bytes()) {
        return Err(format!("field \"{}\" has no valid name", shown()));
    }
    if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        return Err(format!("field \"{}\" has a control character in its value", shown()));
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parameters: &[(&str, &str)]) -> Result<RouteQuery, String> {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        RouteQuery::read(&parameters.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_wrong_question_gets_one_clear_line() {
        let long = format!("http://a/{}", "x".repeat(URL_MAX_BYTES));
        let url = ("url", "http://a/");
        for (parameters, why) in [
            (&[][..], "url is missing"),
            (&[url, url], "url is given more than once"),
            (&[url, ("x\n", "")], "there is no parameter \"x\\x0a\""),
            (&[("url", "a/b")], "must begin with http:// or https://"),
            (&[("url", "http://")], "the URL: "),
            (&[("url", "http://u:p@a/")], "user name"),
            (&[("url", &long)], "longer than 8192 bytes"),
            (&[("url", "http://a/ HTTP/1.1\r\nX: y")], "the URL: "),
            (&[url, ("method", "GET /x")], "is no method"),
            (&[url, ("client", "localhost")], "is no IP address"),
            (&[url, ("field", "x")], "not of the form"),
            (&[url, ("field", "a b: c")], "no valid name"),
            (&[url, ("field", "a: b\r\nc: d")], "control character"),
            (&[url, ("field", "a: \0")], "control character"),
        ] {
            let said = read(parameters).unwrap_err();
            assert!(
                said.contains(why) && !said.contains(char::is_control),
                "{parameters:?}: {said}"
            );
        }
        let many = vec![("field", "a: b"); QUERY_FIELDS_MAX];
        assert!(read(&[&[url], &many[..]].concat()).is_ok());
        let said = read(&[&[url, ("field", "a: b")], &many[..]].concat()).unwrap_err();
        assert_eq!(said, "there are more than 64 fields");
    }
}
