//! The field names that Weir uses, classified once while parsing, so that later lookups compare a
//! byte. Not a registry: a name that Weir does not use is `Other`.

macro_rules! known {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)+) => {
        /// A field name that Weir uses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Known {
            /// Any other name.
            Other,
            /// Any other name that begins with `x-forwarded-`. Proxies have invented many such
            /// names for a client's identity (`-Client-Cert`, `-User`, `-Ssl`, `-Groups`, …), so
            /// the prefix counts, not a list.
            XForwarded,
            $($(#[$doc])* #[doc = concat!("`", $name, "`")] $variant,)+
        }

        impl Known {
            /// Every known name; `Other` and `XForwarded` are not among them.
            pub const ALL: &'static [Known] = &[$(Known::$variant,)+];

            /// Returns the name in lower case; empty for `Other` and `XForwarded`.
            pub fn name(self) -> &'static str {
                match self { Known::Other | Known::XForwarded => "", $(Known::$variant => $name,)+ }
            }
        }
    };
}

known! {
    Host = "host";
    Connection = "connection";
    KeepAlive = "keep-alive";
    ProxyConnection = "proxy-connection";
    Te = "te";
    Trailer = "trailer";
    TransferEncoding = "transfer-encoding";
    ContentLength = "content-length";
    Upgrade = "upgrade";
    Http2Settings = "http2-settings";
    Expect = "expect";
    Cookie = "cookie";
    SetCookie = "set-cookie";
    Forwarded = "forwarded";
    XForwardedFor = "x-forwarded-for";
    XForwardedProto = "x-forwarded-proto";
    XForwardedHost = "x-forwarded-host";
    XForwardedPort = "x-forwarded-port";
    XRealIp = "x-real-ip";
    XRequestId = "x-request-id";
    Traceparent = "traceparent";
    Tracestate = "tracestate";
    Date = "date";
    Server = "server";
    Via = "via";
    Accept = "accept";
    ContentType = "content-type";
    Authorization = "authorization";
    ProxyAuthorization = "proxy-authorization";
    Location = "location";
    RetryAfter = "retry-after";
    UserAgent = "user-agent";
    Referer = "referer";
    WeirExplain = "weir-explain";
    ClientCert = "client-cert";
    ClientCertChain = "client-cert-chain";
    XClientSubject = "x-client-subject";
    GrpcTimeout = "grpc-timeout";
    GrpcStatus = "grpc-status";
    StrictTransportSecurity = "strict-transport-security";
    CdnLoop = "cdn-loop";
}

/// The prefix of [`Known::XForwarded`].
const X_FORWARDED: &[u8] = b"x-forwarded-";

impl Known {
    /// Returns the known name that `name` is, ignoring case.
    #[inline]
    pub fn of(name: &[u8]) -> Known {
        // Length first: it leaves at most five candidates, and the byte compared next one or two.
        let candidates: &[Known] = match name.len() {
            2 => &[Known::Te],
            3 => &[Known::Via],
            4 => &[Known::Host, Known::Date],
            6 => &[Known::Accept, Known::Cookie, Known::Expect, Known::Server],
            7 => &[Known::Upgrade, Known::Trailer, Known::Referer],
            8 => &[Known::Location, Known::CdnLoop],
            9 => &[Known::Forwarded, Known::XRealIp],
            10 => &[
                Known::Connection,
                Known::UserAgent,
                Known::KeepAlive,
                Known::SetCookie,
                Known::Tracestate,
            ],
            11 => &[Known::Traceparent, Known::RetryAfter, Known::ClientCert, Known::GrpcStatus],
            12 => &[Known::ContentType, Known::XRequestId, Known::WeirExplain, Known::GrpcTimeout],
            13 => &[Known::Authorization],
            14 => &[Known::ContentLength, Known::Http2Settings],
            15 => &[Known::XForwardedFor],
            16 => &[
                Known::XForwardedHost,
                Known::XForwardedPort,
                Known::ProxyConnection,
                Known::XClientSubject,
            ],
            17 => &[Known::TransferEncoding, Known::XForwardedProto, Known::ClientCertChain],
            19 => &[Known::ProxyAuthorization],
            25 => &[Known::StrictTransportSecurity],
            _ => &[],
        };
        // Setting bit 5 is a cheap lower-casing; a false match is settled by the comparison.
        let first = name.first().map_or(0, |b| b | 0x20);
        for &known in candidates {
            let expected = known.name().as_bytes();
            if expected[0] == first && expected.eq_ignore_ascii_case(name) {
                return known;
            }
        }
        let begins = first == b'x'
            && name.len() > X_FORWARDED.len()
            && name[..X_FORWARDED.len()].eq_ignore_ascii_case(X_FORWARDED);
        if begins { Known::XForwarded } else { Known::Other }
    }

    /// Returns whether the field concerns one connection only and is never forwarded as it is (RFC
    /// 9110 section 7.6.1).
    #[inline]
    pub fn is_hop_by_hop(self) -> bool {
        matches!(
            self,
            Known::Connection
                | Known::KeepAlive
                | Known::ProxyConnection
                | Known::Te
                | Known::TransferEncoding
                | Known::Upgrade
                | Known::Http2Settings
        )
    }

    /// Returns whether the field tells a server where and how a request arrived: accepted from
    /// trusted peers only.
    #[inline]
    pub fn is_forwarding(self) -> bool {
        matches!(
            self,
            Known::Forwarded
                | Known::XForwarded
                | Known::XForwardedFor
                | Known::XForwardedProto
                | Known::XForwardedHost
                | Known::XForwardedPort
                | Known::XRealIp
                | Known::ClientCert
                | Known::ClientCertChain
                | Known::XClientSubject
        )
    }

    /// Returns whether listing the field in Connection must not remove it: servers would otherwise
    /// frame or route the message differently from Weir.
    #[inline]
    pub(super) fn is_protected(self) -> bool {
        matches!(
            self,
            Known::Host
                | Known::ContentLength
                | Known::TransferEncoding
                | Known::Expect
                | Known::XRequestId
                | Known::Traceparent
                // RFC 8586 section 2: only the operator that configured it may remove it.
                | Known::CdnLoop
        ) || self.is_forwarding()
    }

    /// Returns whether `name` becomes a name that frames, routes or authenticates a message once
    /// `_` is read as `-`, as servers with CGI-like environments do (`X_Forwarded_For` and
    /// `X-Forwarded-For` are both `HTTP_X_FORWARDED_FOR`).
    #[inline]
    pub(super) fn is_masked(name: &[u8]) -> bool {
        const NAME_MAX_BYTES: usize = 19;
        if memchr::memchr(b'_', name).is_none() {
            return false;
        }
        // Longer names are protected only by their prefix.
        if name.len() > NAME_MAX_BYTES {
            return has_prefix(name, X_FORWARDED);
        }
        let mut plain = [0_u8; NAME_MAX_BYTES];
        let plain = &mut plain[..name.len()];
        for (to, &from) in plain.iter_mut().zip(name) {
            *to = hyphened(from);
        }
        let known = Known::of(plain);
        known.is_protected() || known.is_hop_by_hop()
    }
}

/// Returns whether two field names are equal to a server that reads `_` as `-`, as CGI-like
/// environments do; ignoring case.
#[inline]
pub fn is_same_field(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && has_prefix(one, other)
}

/// Returns whether `name` begins with `prefix`, ignoring case, with `_` read as `-`.
#[inline]
fn has_prefix(name: &[u8], prefix: &[u8]) -> bool {
    let same = |(one, other): (&u8, &u8)| hyphened(*one).eq_ignore_ascii_case(&hyphened(*other));
    name.len() >= prefix.len() && name.iter().zip(prefix).all(same)
}

#[inline]
fn hyphened(byte: u8) -> u8 {
    if byte == b'_' { b'-' } else { byte }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_is_found_in_any_case() {
        for &known in Known::ALL {
            let name = known.name();
            assert_eq!(Known::of(name.as_bytes()), known, "{name}");
            assert_eq!(Known::of(name.to_ascii_uppercase().as_bytes()), known, "{name}");
            let mut near = name.as_bytes().to_vec();
            for i in 0..near.len() {
                near[i] = near[i].wrapping_add(1);
                let is_known = Known::ALL.contains(&Known::of(&near));
                assert!(!is_known, "{name} changed at {i}");
                near[i] = near[i].wrapping_sub(1);
            }
            near.push(b'x');
            assert!(!Known::ALL.contains(&Known::of(&near)), "{name}x");
        }
        for other in ["", "x", "X-Custom", "accept-encoding", "x-forwarded", "content_length"] {
            assert_eq!(Known::of(other.as_bytes()), Known::Other, "{other}");
        }
        assert!(Known::ALL.len() < 64, "presence is kept in 64 bits");
    }

    #[test]
    fn underscores_do_not_hide_a_name() {
        for masked in [
            "content_length",
            "Transfer_Encoding",
            "X_Forwarded-For",
            "X_REQUEST_ID",
            "X-Forwarded_User",
            "x_forwarded_tls_client_cert",
            "CDN_Loop",
        ] {
            assert!(Known::is_masked(masked.as_bytes()), "{masked}");
        }
        for plain in ["content-length", "user_agent", "my_field", "x_y", "host", "x_forwarded"] {
            assert!(!Known::is_masked(plain.as_bytes()), "{plain}");
        }
    }

    #[test]
    fn every_name_of_forwarded_identity_is_one() {
        for name in [
            "X-Forwarded-Client-Cert",
            "X-Forwarded-User",
            "X-Forwarded-Ssl",
            "X-Forwarded-Scheme",
            "X-Forwarded-Prefix",
            "X-Forwarded-Server",
            "X-Forwarded-Tls-Client-Cert",
            "X-Forwarded-Preferred-Username",
            "X-Real-IP",
            "Forwarded",
        ] {
            assert!(Known::of(name.as_bytes()).is_forwarding(), "{name}");
        }
        for name in ["X-Forward", "X-Forwarder-Id", "X-Real-IP2", "Y-Forwarded-For"] {
            assert!(!Known::of(name.as_bytes()).is_forwarding(), "{name}");
        }
    }

    #[test]
    fn an_underscore_is_a_hyphen_to_the_next_hop() {
        for (one, other) in [("X-Team", "x_team"), ("x-team", "X-TEAM"), ("a_b", "A_B")] {
            assert!(is_same_field(one.as_bytes(), other.as_bytes()), "{one} {other}");
        }
        for (one, other) in [("X-Team", "X.Team"), ("X-Team", "X-Tea"), ("X-Tea", "X-Team")] {
            assert!(!is_same_field(one.as_bytes(), other.as_bytes()), "{one} {other}");
        }
    }
}
