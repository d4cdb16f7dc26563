//! The keys of `[authentication.NAME]`.

use std::time::Duration;

use super::{FIELD_NAME, HOST, NAME, PATH, TEXT, TIMEOUT, form};
use crate::defaults;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

pub(crate) static AUTHENTICATION: TableSpec = TableSpec {
    heading: "[authentication.NAME]",
    path: "authentication.NAME",
    doc: "A way for requests to prove who sends them. Routes require it by its name, with `authenticate`. Exactly one of `basic`, `jwt` and `forward` is required. A request without proof is answered with 401 (`unauthenticated`), or with the response of the server that `forward` asks. Fields that tell servers who sent a request (`user_header`, `claim_headers`, `identity_headers`) are removed from every request, trailers included, on every route, before anything looks at it.",
    example: "[authentication.staff]\nrealm = \"Staff\"\nforward_credentials = false\nbasic = { users_file = \"staff.htpasswd\", user_header = \"X-User\" }\n\n[authentication.api]\njwt = { keys_file = \"jwks.json\", issuer = \"https://login.example.com\", audience = \"api\", claim_headers = { X-User = \"sub\" } }\n\n[[route]]\npath = \"/admin\"\nauthenticate = \"staff\"\nservice = \"listings\"\n",
    keys: &[
        key(
            "realm",
            TEXT,
            Absent::Then("NAME"),
            "The name of what clients log in to. Browsers show it. It has no effect with `forward`.",
        ),
        key(
            "basic",
            Kind::Table(&BASIC),
            Absent::Then("see above"),
            "A user name and a password in the `Authorization` field (RFC 7617). Use it over TLS only.",
        ),
        key(
            "jwt",
            Kind::Table(&JWT),
            Absent::Then("see above"),
            "A signed token (JWT, RFC 7519) in the `Authorization` field, as `Bearer TOKEN`.",
        ),
        key(
            "forward",
            Kind::Table(&FORWARD),
            Absent::Then("see above"),
            "A server that is asked about each request: `auth_request` of nginx, ForwardAuth of Traefik, `forward_auth` of Caddy.",
        ),
        key(
            "forward_credentials",
            Kind::Boolean,
            Absent::Boolean(defaults::FORWARD_CREDENTIALS),
            "Whether servers receive the `Authorization` field. With `forward`, the authentication server receives it in any case.",
        ),
    ],
};

static BASIC: TableSpec = TableSpec {
    heading: "basic of [authentication.NAME]",
    path: "authentication.NAME.basic",
    doc: "Users and their passwords. Passwords are verified on threads of their own; a success is remembered for a minute. Up to 64 verifications wait, eight of them for one client. Requests beyond that, and those that have waited for 10 s, are answered with 503 (`authentication_overloaded`).",
    example: "[authentication.staff]\nbasic = { users_file = \"staff.htpasswd\" }\n\n[[route]]\nauthenticate = \"staff\"\nservice = \"listings\"\n",
    keys: &[
        key(
            "users_file",
            Kind::Text(form("file path")),
            Absent::Required,
            "An htpasswd file: `USER:HASH` per line, with hashes by bcrypt, Argon2 or SHA-crypt (`htpasswd -B`, `mkpasswd`). Other users should not be able to read it. A changed file takes effect like a change of this one; a removed user or old password no longer counts then.",
        ),
        key(
            "user_header",
            Kind::Text(FIELD_NAME),
            Absent::Then("none"),
            "A field in which servers receive the user's name.",
        ),
    ],
};

static FORWARD: TableSpec = TableSpec {
    heading: "forward of [authentication.NAME]",
    path: "authentication.NAME.forward",
    doc: "A server that decides about each request (oauth2-proxy, Authelia, Authentik, a service of your own). It receives a GET without the body, with the method, target, host, scheme and client of the request in `X-Forwarded-Method`, `X-Forwarded-Uri`, `X-Forwarded-Host`, `X-Forwarded-Proto` and `X-Forwarded-For` (the client's address alone). Clients cannot set these. A 2xx lets the request pass, so `path` must not lead to a page that answers everyone with 200. A redirect to a login page, a 401, 403 or 429 and most other 4xx (of at most 64 kB) become the client's answer. Everything else, 404 and 405 included, denies the request with 503 (`authentication_unavailable`) or 504 (`authentication_timeout`).",
    example: "[authentication.sso.forward]\nservice = \"oauth2-proxy\"\nhost = \"auth.example.com\"\npath = \"/oauth2/auth\"\ntimeout = \"3s\"\nrequest_headers = [\"Cookie\", \"Authorization\"]\nuser_header = \"X-Auth-Request-User\"\nidentity_headers = [\"X-Auth-Request-Email\"]\nresponse_headers = [\"Set-Cookie\"]\n\n[[route]]\nauthenticate = \"sso\"\nservice = \"listings\"\n\n[[route]]\npath = \"/oauth2\"\nservice = \"oauth2-proxy\"\n\n[service.oauth2-proxy]\nserver = [{ address = \"10.0.3.1:4180\" }]\n",
    keys: &[
        key(
            "service",
            NAME,
            Absent::Required,
            "The [service.NAME] whose servers are asked. Its TLS, health checks, limits, timeouts and retries apply.",
        ),
        key(
            "path",
            Kind::Text(PATH),
            Absent::Required,
            "The path that is asked for, with its query if it has one.",
        ),
        key(
            "host",
            HOST,
            Absent::Then("that of the request"),
            "The `Host` that the server receives.",
        ),
        key(
            "timeout",
            TIMEOUT,
            Absent::Duration(defaults::FORWARD_AUTH_TIMEOUT),
            "How long the verdict may take in total, the wait for a free slot included. The timeouts of the service apply as well.",
        ),
        key(
            "request_headers",
            Kind::List(&Kind::Text(FIELD_NAME)),
            Absent::Then("all"),
            "The request fields that the server receives, such as `[\"Cookie\", \"Authorization\"]`. Fields about the body, conditional requests, ranges and upgrades are left out in any case, as are those in which a client could contradict the `X-Forwarded-…` above (`X-Forwarded-*`, `X-Original-*`, `Forwarded`, `X-Real-IP` and similar). If the server reads other fields about the client or the target, list here what it needs.",
        ),
        key(
            "user_header",
            Kind::Text(FIELD_NAME),
            Absent::Then("none"),
            "The field of a 2xx that has the user's name. Servers receive it; it is `user` in the access log and in `by` of `rate_limit`.",
        ),
        key(
            "identity_headers",
            Kind::List(&Kind::Text(FIELD_NAME)),
            Absent::Then("none"),
            "Further fields of a 2xx that servers receive, such as `[\"X-Auth-Request-Email\", \"Remote-Groups\"]`. One that the 2xx does not have is left out; a request whose 2xx has one that is not fit for a field (control characters, too long) is refused.",
        ),
        key(
            "response_headers",
            Kind::List(&Kind::Text(FIELD_NAME)),
            Absent::Then("`Set-Cookie`"),
            "Fields of a 2xx that the client receives with the response, such as a renewed session cookie. `Set-Cookie` is added to those of the server; other fields replace the server's.",
        ),
    ],
};

static JWT: TableSpec = TableSpec {
    heading: "jwt of [authentication.NAME]",
    path: "authentication.NAME.jwt",
    doc: "What a token must be. An algorithm is bound to the key: an RSA or EC key never verifies a symmetric signature.",
    example: "[authentication.api]\njwt = { keys_file = \"jwks.json\", issuer = \"https://login.example.com\", audience = [\"api\"], claims = { groups = \"staff\" } }\n\n[authentication.partners.jwt]\nkeys_url = \"https://login.example.com/.well-known/jwks.json\"\nkeys_ca = \"internal.pem\"\nsymmetric_keys = false\nalgorithms = [\"ES256\", \"EdDSA\"]\ntypes = \"at+jwt\"\nleeway = \"10s\"\nexpiry_required = true\nissuer = \"https://login.example.com\"\naudience = [\"partners\"]\n\n[[route]]\npath = \"/partners\"\nauthenticate = \"partners\"\nservice = \"accounts\"\n\n[[route]]\nauthenticate = \"api\"\nservice = \"listings\"\n",
    keys: &[
        key(
            "keys_file",
            Kind::Text(form("file path")),
            Absent::Then("see `keys_url`"),
            "A key set (JWKS, RFC 7517): RSA keys of at least 2,048 bits, P-256, P-384, P-521 and Ed25519. A changed file takes effect like a change of this one.",
        ),
        key(
            "keys_url",
            Kind::Text(form("URL")),
            Absent::Then("see `keys_file`"),
            "The URL of a key set, `jwks_uri` of an OpenID Connect issuer. Exactly one of this and `keys_file` is required. It is fetched about every ten minutes (or as often as its `Cache-Control: max-age` says, between a minute and a day), and at once for a token with an unknown key, at most every 30 s. The last set that could be fetched stays in use.",
        ),
        key(
            "keys_ca",
            Kind::Text(form("file path")),
            Absent::Then("the authorities that this system trusts"),
            "Certificates (PEM) of the authorities that may have issued the certificate of the server of `keys_url`.",
        ),
        key(
            "symmetric_keys",
            Kind::Boolean,
            Absent::Boolean(defaults::SYMMETRIC_KEYS),
            "Whether symmetric keys of the set (`oct`) are used. Any user who can read the file can then sign tokens, so Weir refuses it if other users may read it.",
        ),
        key(
            "algorithms",
            Kind::OneOrMore(&Kind::Text(form("algorithm"))),
            Absent::Then("all that a key of the set can verify"),
            "The algorithms accepted: `RS256`, `RS384`, `RS512`, `PS256`, `PS384`, `PS512`, `ES256`, `ES384`, `ES512`, `EdDSA`, and with `symmetric_keys` `HS256`, `HS384`, `HS512`.",
        ),
        key("issuer", Kind::OneOrMore(&TEXT), Absent::Then("any"), "The issuers accepted (`iss`)."),
        key(
            "audience",
            Kind::OneOrMore(&TEXT),
            Absent::Then("any, also tokens that were issued for other services"),
            "The audiences accepted: a token must have one of them in `aud`.",
        ),
        key(
            "types",
            Kind::OneOrMore(&TEXT),
            Absent::Then("any"),
            "The types accepted (`typ`), such as `at+jwt`.",
        ),
        key(
            "leeway",
            Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(300) },
            Absent::Duration(defaults::TOKEN_LEEWAY),
            "How far the clock of the issuer may differ.",
        ),
        key(
            "expiry_required",
            Kind::Boolean,
            Absent::Boolean(defaults::EXPIRY_REQUIRED),
            "Whether a token without `exp` is refused.",
        ),
        key(
            "claims",
            Kind::Map(form("claim"), &TEXT),
            Absent::Then("none"),
            "Claims that a token must have, with the value that each must be or, as a list, contain: `{ groups = \"staff\" }`. A dot leads into an object: `\"realm_access.roles\"`. Otherwise the request is answered with 403 (`http_request_denied`).",
        ),
        key(
            "claim_headers",
            Kind::Map(FIELD_NAME, &Kind::Text(form("claim"))),
            Absent::Then("none"),
            "Fields in which servers receive claims: `{ X-User = \"sub\" }`. A list is joined by commas. A claim that the token does not have (missing, `null`, an empty list) sends no field; a token whose claim is not fit for a field (an object, empty, control characters, too long) is refused.",
        ),
    ],
};
