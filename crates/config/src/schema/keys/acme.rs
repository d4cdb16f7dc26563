//! Keys of `[acme]`: how certificates are obtained and renewed.

use model::AcmeChallenge;

use super::{FILE, TEXT, form};
use crate::defaults;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

pub(crate) static ACME: TableSpec = TableSpec {
    heading: "[acme]",
    path: "acme",
    doc: "How Weir obtains and renews certificates by ACME (RFC 8555), all from one certificate authority. Which ones: `acme` in `certificates` of a listener's `tls`. See `docs/certificates.md`.",
    example: "[acme]\ncontacts = [\"admin@example.com\"]\nterms_agreed = true\n\n[[listener]]\naddress = \"0.0.0.0:80\"\n\n[[listener]]\naddress = \"0.0.0.0:443\"\ntls = { certificates = [{ acme = [\"example.com\", \"www.example.com\"] }] }\n",
    keys: &[
        key(
            "directory",
            Kind::Text(form("https URL")),
            Absent::Text(defaults::ACME_DIRECTORY),
            "The URL of the authority's directory. The default is Let's Encrypt; for tests it has `https://acme-staging-v02.api.letsencrypt.org/directory`, whose limits are higher and whose certificates no client trusts.",
        ),
        key(
            "ca",
            FILE,
            Absent::Then("the system's authorities"),
            "PEM: the only certificate authorities to trust for the directory's own certificate.",
        ),
        key(
            "contacts",
            Kind::List(&Kind::Text(form("e-mail address"))),
            Absent::Texts(&[]),
            "E-mail addresses that the authority may write to.",
        ),
        key(
            "terms_agreed",
            Kind::Boolean,
            Absent::Required,
            "`true`: you agree to the authority's terms of service. Weir cannot agree for you.",
        ),
        key(
            "external_account",
            Kind::Table(&EXTERNAL_ACCOUNT),
            Absent::Then("none"),
            "An account that you have with the authority already (external account binding), as ZeroSSL, Google and others require.",
        ),
        key(
            "challenge",
            Kind::Choice(AcmeChallenge::WORDS),
            Absent::Text(AcmeChallenge::Http01.as_str()),
            "How the authority checks that the names are yours. `\"http-01\"`: it sends a request to port 80 of each name. `\"tls-alpn-01\"`: it connects to port 443.",
        ),
        key(
            "profile",
            TEXT,
            Absent::Then("the authority's default"),
            "The certificate profile to ask for, such as `\"shortlived\"` (6 days) at Let's Encrypt.",
        ),
        key(
            "renewal",
            Kind::Table(&RENEWAL),
            Absent::Then("as if empty"),
            "When certificates are renewed.",
        ),
        key(
            "state_directory",
            Kind::Text(form("directory path")),
            Absent::Then("`acme` below the top level's `state_directory`"),
            "Directory for the account's key, the certificates and their keys. An absolute path. Weir creates it, for its own user only.",
        ),
    ],
};

static EXTERNAL_ACCOUNT: TableSpec = TableSpec {
    heading: "external_account in [acme]",
    path: "acme.external_account",
    doc: "An account outside of ACME (RFC 8555 section 7.3.4). It is used once, when Weir creates its ACME account.",
    example: "# A private authority that issues short-lived certificates.\n[acme]\ndirectory = \"https://ca.internal/acme/directory\"\nca = \"internal.pem\"\nterms_agreed = true\nchallenge = \"tls-alpn-01\"\nprofile = \"shortlived\"\nexternal_account = { key_id = \"kid-1\", hmac_key_file = \"eab.key\" }\nstate_directory = \"/var/lib/weir/acme\"\n\n[[listener]]\naddress = \"0.0.0.0:443\"\ntls = { certificates = [{ acme = [\"example.com\"] }] }\n",
    keys: &[
        key("key_id", TEXT, Absent::Required, "The key's identifier, as the authority gave it."),
        key(
            "hmac_key_file",
            FILE,
            Absent::Required,
            "A file with the HMAC key in base64url, as the authority gave it. Weir rejects the file if other users may read it.",
        ),
    ],
};

static RENEWAL: TableSpec = TableSpec {
    heading: "renewal in [acme]",
    path: "acme.renewal",
    doc: "When certificates are renewed.",
    example: "[acme]\nterms_agreed = true\nrenewal = { ari = false, after = 0.5 }\n\n[[listener]]\naddress = \"0.0.0.0:80\"\n\n[[listener]]\naddress = \"0.0.0.0:443\"\ntls = { certificates = [{ acme = [\"example.com\"] }] }\n",
    keys: &[
        key(
            "ari",
            Kind::Boolean,
            Absent::Boolean(true),
            "Whether Weir asks the authority when to renew (RFC 9773). If it does not say, `after` applies.",
        ),
        key(
            "after",
            Kind::Number { min: 0.1, max: 0.9 },
            Absent::Number(defaults::ACME_RENEW_AFTER),
            "The part of a certificate's lifetime after which it is renewed. The moment differs a little from certificate to certificate, so that not all are renewed at once.",
        ),
    ],
};
