//! Settings for certificates that are obtained and renewed by ACME (RFC 8555).

use std::path::PathBuf;
use std::sync::Arc;

use crate::Material;

/// How certificates are obtained and renewed, all from one certificate authority.
///
/// `Debug` shows no secret: a [`Material`] hides its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acme {
    /// URL of the authority's directory (RFC 8555 section 7.1.1), `https` only.
    pub directory: Arc<str>,
    /// The authorities trusted for the directory's own certificate, PEM; those of the system by
    /// default.
    pub ca: Material,
    /// E-mail addresses for the account, without `mailto:`. May be empty.
    pub contacts: Vec<String>,
    /// Whether the operator agrees to the authority's terms of service. Without it, authorities
    /// that have terms refuse the account (RFC 8555 section 7.3.3).
    pub terms_agreed: bool,
    /// Binds the account to one that the authority already knows (RFC 8555 section 7.3.4). It is
    /// used once, when the account is created.
    pub external_account: Option<ExternalAccount>,
    /// The certificates, each with its own order.
    pub certificates: Vec<AcmeCertificate>,
    /// How control of the names is proven.
    pub challenge: AcmeChallenge,
    /// The profile that is requested from the authority, such as `shortlived`
    /// (draft-ietf-acme-profiles); `None`: its default. Takes effect at the next order.
    pub profile: Option<String>,
    /// When certificates are renewed.
    pub renewal: AcmeRenewal,
    /// The directory for the account key, the certificates and their keys. It is created if
    /// missing, with access for its owner only.
    pub state: PathBuf,
}

/// A certificate to obtain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcmeCertificate {
    /// At least one. DNS names in lower case without a final dot, or IP addresses (RFC 8738). No
    /// wildcards: neither challenge can prove them.
    pub names: Vec<String>,
}

/// An account that the authority has outside of ACME. The key is never shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAccount {
    /// The key's identifier, as the authority gave it.
    pub key_id: String,
    /// A file with the HMAC key in base64url (RFC 8555 section 7.3.4), as the authority gave it.
    pub hmac_key: Material,
}

crate::words! {
    /// How control of a name is proven.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum AcmeChallenge {
        /// A file over HTTP on port 80 (RFC 8555 section 8.3).
        Http01 = "http-01",
        /// A certificate in a TLS handshake on port 443 (RFC 8737).
        TlsAlpn01 = "tls-alpn-01",
    }
}

/// When certificates are renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcmeRenewal {
    /// Whether the authority is asked when to renew (ACME Renewal Information, RFC 9773). An
    /// authority without it, or one that does not answer, leaves `after_permille` in effect.
    pub ari: bool,
    /// The part of a certificate's lifetime after which it is renewed, in thousandths, from 100 to
    /// 900. The exact moment is up to a thirtieth of the lifetime earlier and differs by
    /// certificate, so that they are not all renewed at once.
    pub after_permille: u16,
}

impl Default for AcmeRenewal {
    /// By ARI, or else at two thirds of the lifetime.
    fn default() -> AcmeRenewal {
        AcmeRenewal { ari: true, after_permille: 667 }
    }
}
