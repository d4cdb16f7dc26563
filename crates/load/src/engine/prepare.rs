//! Turns the options into a plan: parses URLs, creates bodies, resolves names, and connects to each
//! server once, so that errors are reported before the load starts.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use os::poll::{Interest, Poller};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use wire::http1::encode;

use super::link::Link;
use super::plan::{Protocol, Site, Target};
use super::refusal::{Refusal, mistake};
use super::sources;

/// How long the lookup of a server's name may take.
const LOOKUP_MAX: Duration = Duration::from_secs(30);

/// A request as it was asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `http://` or `https://`, host, port, path and query.
    pub url: String,
    /// Its method.
    pub method: String,
    /// Its fields, in order; Host may be among them.
    pub fields: Vec<(String, String)>,
    /// Its body.
    pub body: Bytes,
    /// Its share among several.
    pub weight: u32,
}

/// How servers are reached.
#[derive(Clone, Debug)]
pub struct Ways {
    /// What is spoken.
    pub protocol: Protocol,
    /// Whether a connection is used for further requests.
    pub keep_alive: bool,
    /// How TLS is spoken.
    pub tls: Option<Arc<ClientConfig>>,
    /// Where connections come from.
    pub sources: Vec<IpAddr>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
}

/// Requests and the servers they go to.
///
/// # Errors
/// A source that is none; the first URL, method or field that is none; a name without addresses; a
/// server that none of its addresses answers for, or that does not speak TLS as asked.
pub fn targets(asked: &[Asked], ways: &Ways) -> Result<(Vec<Target>, Vec<Site>), Refusal> {
    sources::check(&ways.sources)?;
    let mut sites: Vec<Site> = Vec::new();
    let mut targets = Vec::new();
    for asked in asked {
        let place = Place::read(&asked.url)?;
        let is_same = |site: &Site| site.name == place.name() && site.tls.is_some() == place.is_tls;
        let site = if let Some(known) = sites.iter().position(is_same) {
            known
        } else {
            let tls = place.is_tls.then(|| ways.tls.clone()).flatten();
            if place.is_tls && tls.is_none() {
                return mistake(format!(
                    "{}: this system has no authorities to verify certificates by; name them with \
                     --cacert, or use --insecure",
                    asked.url
                ));
            }
            sites.push(find(&place, tls, ways)?);
            sites.len() - 1
        };
        targets.push(target(asked, &place, site, ways)?);
    }
    if targets.iter().all(|target| target.weight == 0) {
        return mistake("every target has the weight 0; at least one must have more");
    }
    Ok((targets, sites))
}

/// A server that connections go to, without a request.
///
/// # Errors
/// As [`targets`].
pub fn site(host: &str, port: u16, ways: &Ways) -> Result<Site, Refusal> {
    sources::check(&ways.sources)?;
    let uri = Uri::from_static("/");
    find(&Place { host: host.to_owned(), port, is_tls: false, uri }, None, ways)
}

/// Where a URL leads.
struct Place {
    host: String,
    port: u16,
    is_tls: bool,
    uri: Uri,
}

impl Place {
    fn read(url: &str) -> Result<Place, Refusal> {
        let whole = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        // A fragment is for the one who asks, and never sent (RFC 9110 section 4.2.5).
        let whole = whole.split('#').next().unwrap_or_default();
        let Ok(uri) = whole.parse::<Uri>() else {
            return mistake(format!("{url}: not a URL; it looks like http://host:port/path"));
        };
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            other => {
                let other = other.unwrap_or_default();
                return mistake(format!("{url}: {other}: is not spoken here; use http: or https:"));
            }
        };
        let Some(authority) = uri.authority() else {
            return mistake(format!("{url}: no host; it looks like http://host:port/path"));
        };
        if authority.as_str().contains('@') {
            return mistake(format!(
                "{}: a password in a URL is not sent; use -H 'Authorization: Basic …'",
                authority.host()
            ));
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        if host.is_empty() || authority.port_u16() == Some(0) {
            return mistake(format!("{url}: no host or port that could be connected to"));
        }
        let port = match (authority.port(), authority.port_u16()) {
            (_, Some(port)) => port,
            (None, None)
                if authority.as_str().ends_with(':') || !authority.as_str().contains(':') =>
            {
                if is_tls {
                    443
                } else {
                    80
                }
            }
            (None, None) if authority.as_str().ends_with(']') => {
                if is_tls {
                    443
                } else {
                    80
                }
            }
            _ => return mistake(format!("{url}: the port is not a number up to 65535")),
        };
        Ok(Place { host, port, is_tls, uri })
    }

    /// Host and port, which distinguish connections.
    fn name(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// What the server is called in a request.
    fn authority(&self) -> String {
        let default = if self.is_tls { 443 } else { 80 };
        let name = self.name();
        let bare = name.strip_suffix(&format!(":{default}"));
        bare.filter(|_| self.port == default).unwrap_or(&name).to_owned()
    }
}

/// Looks a server up and greets it.
fn find(place: &Place, tls: Option<Arc<ClientConfig>>, ways: &Ways) -> Result<Site, Refusal> {
    let name = place.name();
    let unreachable = |text: String| Err(Refusal::Unreachable(text));
    let begun = os::clock::nanos();
    let addresses: Vec<SocketAddr> =
        match transport::names::addresses_blocking(&place.host, place.port, LOOKUP_MAX) {
            Ok(found) => found,
            Err(error) => return unreachable(format!("{}: no address found: {error}", place.host)),
        };
    let lookup = Duration::from_nanos(os::clock::nanos() - begun);
    let candidates = sources::reachable(&name, &addresses, &ways.sources)?;
    let tls = match tls {
        None => None,
        Some(config) => match ServerName::try_from(place.host.clone()) {
            Ok(name) => Some((config, name)),
            Err(_) => return mistake(format!("{}: no name that TLS could verify", place.host)),
        },
    };
    let mut last = format!("{name}: no address found");
    for address in candidates {
        let socket = match greet(address, ways) {
            Ok(socket) => socket,
            Err(error) => {
                last = why_not(&name, address, &error);
                continue;
            }
        };
        let site = Site { name, address, addresses: addresses.clone(), lookup, tls };
        if let Some((config, server)) = &site.tls {
            speak_tls(socket, config, server, ways)
                .map_err(|why| Refusal::Unreachable(format!("{} ({address}): {why}", site.name)))?;
        }
        return Ok(site);
    }
    unreachable(last)
}

/// Connects and waits for it.
fn greet(address: SocketAddr, ways: &Ways) -> io::Result<TcpStream> {
    let socket = match ways.sources.first() {
        Some(&source) => os::socket::connect_begin_from(address, source)?,
        None => os::socket::connect_begin(address, None)?,
    };
    let mut poller = Poller::new()?;
    poller.add(&socket, 0, Interest::ReadWrite)?;
    wait_for(&mut poller, ways.connect_timeout)?;
    match socket.take_error()? {
        None => Ok(socket),
        Some(error) => Err(error),
    }
}

/// Waits until something has happened, also across signals.
fn wait_for(poller: &mut Poller, time: Duration) -> io::Result<()> {
    let until = os::clock::now() + time;
    while poller.is_empty() {
        let left = until.since(os::clock::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        poller.wait(left)?;
    }
    Ok(())
}

fn why_not(name: &str, address: SocketAddr, error: &io::Error) -> String {
    let why = match error.kind() {
        io::ErrorKind::ConnectionRefused => "nothing listens there (connection refused)".to_owned(),
        io::ErrorKind::TimedOut => {
            "no answer: a firewall, a wrong address, or a server that is down".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "no local port or source address is free for it".to_owned()
        }
        _ => error.to_string(),
    };
    if name == address.to_string() {
        format!("{name}: {why}")
    } else {
        format!("{name} ({address}): {why}")
    }
}

/// One handshake; what it fails by will fail every other.
fn speak_tls(
    socket: TcpStream,
    config: &Arc<ClientConfig>,
    server: &ServerName<'static>,
    ways: &Ways,
) -> Result<(), String> {
    let mut poller = Poller::new().map_err(|error| error.to_string())?;
    poller.add(&socket, 0, Interest::Read).map_err(|error| error.to_string())?;
    let mut link = Link::new(socket);
    link.begin_tls(config, server).map_err(|error| error.to_string())?;
    loop {
        match link.handshake() {
            Ok(true) => break,
            Ok(false) => {}
            Err(error) => return Err(tls_failed(&error)),
        }
        if wait_for(&mut poller, ways.connect_timeout).is_err() {
            return Err("the TLS handshake is not answered; is TLS spoken there?".to_owned());
        }
        // It says the same until it is asked again.
        poller.wait(Duration::ZERO).map_err(|error| error.to_string())?;
    }
    if ways.protocol == Protocol::Http2 && link.alpn() != Some(b"h2") {
        return Err(
            "the server does not offer HTTP/2 over TLS (ALPN); leave --http2 out".to_owned()
        );
    }
    Ok(())
}

fn tls_failed(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(why)) => {
            format!(
                "TLS: the certificate is not accepted: {why}; name its authority with --cacert, or use --insecure"
            )
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            "TLS: what answers there does not speak TLS; is it http: and not https:?".to_owned()
        }
        Some(other) => format!("TLS: {other}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "TLS: the server closed the connection in the handshake".to_owned()
        }
        None => format!("TLS: {error}"),
    }
}

/// The bytes of a request.
fn target(asked: &Asked, place: &Place, site: usize, ways: &Ways) -> Result<Target, Refusal> {
    let Ok(method) = http::Method::from_bytes(asked.method.as_bytes()) else {
        return mistake(format!("{}: not a method", asked.method));
    };
    let path = place.uri.path_and_query().map_or("/", |path| path.as_str());
    let host = asked.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = host.map_or_else(|| place.authority(), |(_, value)| value.clone());
    let mut http1 = Vec::new();
    encode::put_request_line(&mut http1, method.as_str(), path);
    encode::put_field(&mut http1, b"Host", host.as_bytes());
    let scheme = if place.is_tls { "https" } else { "http" };
    let mut http2 = http::Request::builder()
        .method(method.clone())
        .version(http::Version::HTTP_2)
        .uri(format!("{scheme}://{host}{path}"));
    let has = |wanted: &str| asked.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    let agent = concat!("weir/", env!("CARGO_PKG_VERSION"));
    let mut fields: Vec<(&str, String)> = Vec::new();
    if !has("user-agent") {
        fields.push(("User-Agent", agent.to_owned()));
    }
    if !has("accept") {
        fields.push(("Accept", "*/*".to_owned()));
    }
    let wants_length =
        !asked.body.is_empty() || matches!(method.as_str(), "POST" | "PUT" | "PATCH");
    if wants_length && !has("content-length") {
        fields.push(("Content-Length", asked.body.len().to_string()));
    }
    for (name, value) in &asked.fields {
        if !name.eq_ignore_ascii_case("host") {
            fields.push((name, value.clone()));
        }
    }
    for (name, value) in &fields {
        let is_field = http::HeaderName::from_bytes(name.as_bytes()).is_ok()
            && http::HeaderValue::from_str(value).is_ok();
        if !is_field {
            return mistake(format!("{name}: {value}: not a field; write -H 'Name: value'"));
        }
        encode::put_field(&mut http1, name.as_bytes(), value.as_bytes());
        // RFC 9113 section 8.2.2: fields of the connection have no place in HTTP/2.
        if !name.eq_ignore_ascii_case("connection") {
            http2 = http2.header(name.to_ascii_lowercase(), value);
        }
    }
    if !ways.keep_alive && !has("connection") {
        encode::put_field(&mut http1, b"Connection", b"close");
    }
    http1.extend_from_slice(b"\r\n");
    http1.extend_from_slice(&asked.body);
    let http2 = http2.body(()).or_else(|error| mistake(format!("{}: {error}", asked.url)))?;
    Ok(Target {
        url: asked.url.clone(),
        is_head: method == http::Method::HEAD,
        method: method.as_str().to_owned(),
        weight: asked.weight,
        site,
        http1: http1.into(),
        http2,
        body: asked.body.clone(),
    })
}
