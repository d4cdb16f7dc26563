//! Writes the head of the request by which an authentication server is asked.
//!
//! The server decides by what Weir states, so nothing that a client writes may contradict it: the
//! fields about the request are written here alone.

use std::fmt::Write as _;
use std::net::IpAddr;

use model::{Address, ForwardRules};
use wire::http1::{Known, RequestHead, encode};

use super::Bytes;
use super::origin::Origin;

/// A question to an authentication server: what its head has beside the request's fields.
pub(crate) struct Inquiry<'a> {
    pub(crate) rules: &'a ForwardRules,
    /// The client's address, which is not that of a trusted proxy.
    pub(crate) client: IpAddr,
    /// Replaces a host that the client did not name.
    pub(crate) server: Address,
    /// As in the access log.
    pub(crate) request_id: &'a [u8],
    /// The field line by which this instance recognises its own requests.
    pub(crate) loop_mark: &'a [u8],
}

/// Appends the head for the authentication server.
pub(crate) fn write_inquiry(
    head: &RequestHead,
    origin: &Origin,
    inquiry: &Inquiry<'_>,
    out: &mut Vec<u8>,
) {
    let Inquiry { rules, client, server, request_id, loop_mark } = inquiry;
    encode::put_request_line(out, "GET", &rules.path);
    out.extend_from_slice(b"Host: ");
    match rules.host.as_deref().unwrap_or(head.authority()) {
        "" => _ = write!(Bytes(out), "{server}"),
        host => out.extend_from_slice(host.as_bytes()),
    }
    out.extend_from_slice(b"\r\n");
    let is_asked_for = |name: &[u8]| match &rules.request_fields {
        None => true,
        Some(names) => names.iter().any(|one| name.eq_ignore_ascii_case(one.as_bytes())),
    };
    for field in head.fields() {
        let drop = field.hop_by_hop
            || is_left_out(field.known, field.name, origin.trusted)
            || !is_asked_for(field.name) && field.known != Known::CdnLoop;
        if !drop {
            encode::put_field(out, field.name, field.value);
        }
    }
    write_facts(head, origin, *client, out);
    encode::put_field(out, b"X-Request-Id", request_id);
    out.extend_from_slice(loop_mark);
    out.extend_from_slice(b"\r\n");
}

/// Returns whether the server does not receive a field: it belongs to the body, to a condition or to a
/// part of the content, which this request does not have or ask for, or it could contradict what Weir
/// states.
fn is_left_out(known: Known, name: &[u8], trusted: bool) -> bool {
    /// As nginx, Envoy, Authelia and others name the original request, or as servers let clients
    /// replace it.
    const PREFIXES: [&[u8]; 10] = [
        b"content-",
        b"if-",
        b"range",
        b"sec-websocket-",
        b"x-envoy-original-",
        b"x-forwarded",
        b"x-http-method",
        b"x-method-override",
        b"x-original-",
        b"x-rewrite-",
    ];
    /// In which other proxies state what Weir states, and which servers can be configured to read.
    const OF_WEIR: [&[u8]; 12] = [
        b"forwarded",
        b"forwarded-for",
        b"front-end-https",
        b"host",
        b"x-host",
        b"x-proto",
        b"x-real-ip",
        b"x-request-id",
        b"x-scheme",
        b"x-uri",
        b"x-url",
        b"x-url-scheme",
    ];
    /// In which proxies in front state the client's address or certificate.
    const OF_PROXIES: [&[u8]; 17] = [
        b"cf-connecting-ip",
        b"cf-connecting-ipv6",
        b"client-cert",
        b"client-cert-chain",
        b"client-ip",
        b"fastly-client-ip",
        b"fly-client-ip",
        b"true-client-ip",
        b"x-appengine-user-ip",
        b"x-azure-clientip",
        b"x-client-ip",
        b"x-client-subject",
        b"x-cluster-client-ip",
        b"x-envoy-external-address",
        b"x-originating-ip",
        b"x-proxyuser-ip",
        b"x-remote-ip",
    ];
    let is_one_of = |names: &[&[u8]]| names.iter().any(|one| is_same(name, one));
    match known {
        Known::Expect | Known::WeirExplain => true,
        Known::Traceparent | Known::Tracestate => !trusted,
        _ if trusted && is_one_of(&OF_PROXIES) => false,
        _ => {
            known.is_forwarding()
                || is_one_of(&OF_WEIR)
                || is_one_of(&OF_PROXIES)
                || PREFIXES.iter().any(|prefix| has_prefix(name, prefix))
        }
    }
}

/// Returns whether a name begins with `prefix`, also to a server that reads some character as `-`.
fn has_prefix(name: &[u8], prefix: &[u8]) -> bool {
    let same = |(a, b): (&u8, &u8)| {
        a.eq_ignore_ascii_case(b) || !a.is_ascii_alphanumeric() && !b.is_ascii_alphanumeric()
    };
    name.len() >= prefix.len() && name.iter().zip(prefix).all(same)
}

/// Returns whether two names are one, also to a server that reads some character as `-`.
fn is_same(name: &[u8], other: &[u8]) -> bool {
    name.len() == other.len() && has_prefix(name, other)
}

/// Appends what Weir states about the request.
fn write_facts(head: &RequestHead, origin: &Origin, client: IpAddr, out: &mut Vec<u8>) {
    let believed = |known| {
        if origin.trusted { head.known(known) } else { None }
    };
    encode::put_field(out, b"X-Forwarded-Method", head.method().as_bytes());
    // Of several proxies, the one that Weir trusts wrote the last.
    let stated = believed(Known::XForwardedProto)
        .and_then(|value| value.rsplit(|byte| *byte == b',').next())
        .map(<[u8]>::trim_ascii);
    let scheme = match stated {
        Some(stated) if stated.eq_ignore_ascii_case(b"https") => "https",
        Some(stated) if stated.eq_ignore_ascii_case(b"http") => "http",
        _ => origin.scheme.name(),
    };
    encode::put_field(out, b"X-Forwarded-Proto", scheme.as_bytes());
    // Not that of a proxy in front: routes are chosen by this one.
    encode::put_field(out, b"X-Forwarded-Host", head.authority().as_bytes());
    out.extend_from_slice(b"X-Forwarded-Uri: ");
    out.extend_from_slice(head.path().as_bytes());
    if let Some(query) = head.query() {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
    // The client alone: from a list, servers do not all take the same address for the client's, and clients
    // can write its beginning.
    let _ = write!(Bytes(out), "\r\nX-Forwarded-For: {}\r\n", client.to_canonical());
    if believed(Known::ClientCert).is_none() {
        out.extend_from_slice(&origin.certificate);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{ForwardFields, ServiceId};
    use wire::http1::{HeadLimits, parse_request};

    use super::super::Scheme;
    use super::*;

    fn rules(request_fields: Option<Vec<String>>) -> ForwardRules {
        ForwardRules {
            service: ServiceId(0),
            host: None,
            path: "/auth?a=b".to_owned(),
            timeout: Duration::from_secs(1),
            request_fields,
            response_fields: Vec::new(),
        }
    }

    fn written(fields: &str, rules: &ForwardRules, trusted: &str) -> String {
        let text = format!("POST /a%20b?c=d HTTP/1.1\r\nHost: a.example.com\r\n{fields}\r\n");
        let mut head = RequestHead::default();
        parse_request(text.as_bytes(), &HeadLimits::default(), &mut head).unwrap();
        let trusted = trusted.split_whitespace().map(|net| net.parse().unwrap()).collect();
        let peer = "203.0.113.9:1000".parse().unwrap();
        let origin = Origin::new(peer, &trusted, FIELDS, Scheme::Http);
        let server = "10.0.0.1:80".parse().unwrap();
        let client = "198.51.100.7".parse().unwrap();
        let (request_id, loop_mark) = (&b"1"[..], &b"CDN-Loop: w\r\n"[..]);
        let inquiry = Inquiry { rules, client, server, request_id, loop_mark };
        let mut out = Vec::new();
        write_inquiry(&head, &origin, &inquiry, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Those towards servers do not matter here.
    const FIELDS: ForwardFields = ForwardFields {
        x_forwarded: false,
        forwarded: false,
        via: false,
        request_id: false,
        real_ip: false,
        traceparent: false,
    };

    const FORGED: &str = "X-Forwarded-Uri: /public\r\nX-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: https\r\n\
        X.Forwarded.Uri: /public\r\nX-Original-URL: https://a/public\r\nX!Original!Method: GET\r\n\
        Forwarded: for=10.0.0.1\r\nX-Real-IP: 10.0.0.1\r\nX-HTTP-Method-Override: GET\r\n\
        X-Request-Id: forged\r\nX-Request.Id: forged\r\nX-Real.IP: 10.0.0.1\r\nCF_Connecting.IP: 10.0.0.1\r\n\
        Client-Cert: :AA==:\r\nClient.Cert: :AA==:\r\nClient-IP: 10.0.0.1\r\nX-Scheme: https\r\n";
    const OF_THE_BODY: &str = "Content-Length: 5\r\nContent-Type: text/plain\r\nExpect: 100-continue\r\n\
        If-None-Match: \"x\"\r\nRange: bytes=0-1\r\nConnection: upgrade, x-hop\r\nUpgrade: websocket\r\n\
        X-Hop: 1\r\nSec-WebSocket-Key: x\r\n";

    #[test]
    fn clients_cannot_contradict_what_the_server_is_told() {
        let sent = format!("{FORGED}{OF_THE_BODY}Cookie: s=1\r\nAuthorization: Basic eA==\r\n");
        let facts = "X-Forwarded-Method: POST\r\nX-Forwarded-Proto: http\r\n\
            X-Forwarded-Host: a.example.com\r\nX-Forwarded-Uri: /a%20b?c=d\r\n\
            X-Forwarded-For: 198.51.100.7\r\nX-Request-Id: 1\r\nCDN-Loop: w\r\n\r\n";
        let begin = "GET /auth?a=b HTTP/1.1\r\nHost: a.example.com\r\n";
        let all = format!("{begin}Cookie: s=1\r\nAuthorization: Basic eA==\r\n{facts}");
        assert_eq!(written(&sent, &rules(None), ""), all);
        let few = rules(Some(vec!["cookie".to_owned(), "x-original-url".to_owned()]));
        assert_eq!(written(&sent, &few, ""), format!("{begin}Cookie: s=1\r\n{facts}"));
    }

    #[test]
    fn a_trusted_proxy_tells_the_scheme_and_the_certificate() {
        let sent = "X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: 198.51.100.2\r\n\
            X-Forwarded-Proto: http, HTTPS\r\nX-Forwarded-Host: other\r\nX-Forwarded-Uri: /other\r\n\
            Client-Cert: :AA==:\r\n";
        let head = written(sent, &rules(None), "203.0.113.0/24");
        for line in [
            "X-Forwarded-For: 198.51.100.7\r\n",
            "X-Forwarded-Proto: https\r\n",
            "X-Forwarded-Host: a.example.com\r\n",
            "X-Forwarded-Uri: /a%20b?c=d\r\n",
            "Client-Cert: :AA==:\r\n",
        ] {
            assert!(head.contains(line), "{head}");
        }
        assert_eq!(head.matches("X-Forwarded-").count(), 5, "{head}");
    }
}
