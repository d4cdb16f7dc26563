//! Connections to the host of a URL.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use model::HttpUrl;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use tokio::time::timeout;

use super::Connection;
use crate::dial::{self, DialError, DialOptions};
use crate::names;
use crate::{Stream, TlsError};

/// Addresses of a host that are tried.
const ADDRESSES_MAX: usize = 4;

/// Why there is no connection to the host of a URL.
#[derive(Debug)]
pub struct ConnectError {
    /// As in the URL.
    authority: String,
    failed: Failed,
}

#[derive(Debug)]
enum Failed {
    /// No certificate can be verified for it: says why.
    Unverifiable(&'static str),
    /// The host's name could not be resolved.
    Lookup(io::Error),
    /// None of its addresses could be connected to; the error of the last.
    Dial(DialError),
}

/// Resolves the host of `url` and connects to the first of its addresses that can be connected to, by TLS with
/// `tls` if the URL is https, which needs it. The lookup, and each of up to 4 addresses, has `step_max`. Sent data
/// may stay unacknowledged for `user_timeout`.
///
/// # Errors
/// The name could not be resolved, or no address connected to.
pub async fn connect(
    url: &HttpUrl,
    tls: Option<&Arc<ClientConfig>>,
    step_max: Duration,
    user_timeout: Duration,
) -> Result<Stream, ConnectError> {
    let failed = try_connect(url, tls, step_max, user_timeout).await;
    failed.map_err(|failed| ConnectError { authority: url.authority().to_owned(), failed })
}

impl Connection {
    /// As [`connect`], for HTTP/1.1.
    ///
    /// # Errors
    /// As [`connect`].
    pub async fn to(
        url: &HttpUrl,
        tls: Option<&Arc<ClientConfig>>,
        step_max: Duration,
        user_timeout: Duration,
    ) -> Result<Connection, ConnectError> {
        connect(url, tls, step_max, user_timeout).await.map(Connection::over)
    }
}

async fn try_connect(
    url: &HttpUrl,
    tls: Option<&Arc<ClientConfig>>,
    step_max: Duration,
    user_timeout: Duration,
) -> Result<Stream, Failed> {
    let lookup = |why: &'static str| Failed::Lookup(io::Error::other(why));
    let tls = match (tls, ServerName::try_from(url.host().to_owned())) {
        _ if !url.is_https() => None,
        (Some(tls), Ok(name)) => Some((Arc::clone(tls), name)),
        (None, _) => {
            return Err(Failed::Unverifiable("nothing is known to verify its certificate by"));
        }
        (_, Err(_)) => {
            return Err(Failed::Unverifiable("no certificate can have such a name"));
        }
    };
    let options = DialOptions { connect_timeout: step_max, user_timeout: Some(user_timeout), tls };
    let found = timeout(step_max, names::addresses(url.host(), url.port())).await;
    let found = found.map_err(|_| lookup("the lookup took too long"))?;
    let addresses = found.map_err(Failed::Lookup)?;
    let mut last = lookup("the name has no address");
    for address in addresses.into_iter().take(ADDRESSES_MAX) {
        match dial::dial(address, &options).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Failed::Dial(error),
        }
    }
    Err(last)
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConnectError { authority, failed } = self;
        let error = match failed {
            Failed::Unverifiable(why) => {
                return write!(f, "cannot connect to {authority} by TLS: {why}");
            }
            Failed::Lookup(error) => return write!(f, "cannot resolve {authority}: {error}"),
            Failed::Dial(error) => &error.source,
        };
        write!(f, "cannot connect to {authority}: ")?;
        match error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) {
            // A certificate that is not trusted has its remedy in the settings.
            Some(
                error @ TlsError::Certificate(
                    CertificateError::UnknownIssuer | CertificateError::BadSignature,
                ),
            ) => write!(
                f,
                "{error}; if it is a private authority, name the CA that issued its server's \
                 certificate"
            ),
            Some(error) => error.fmt(f),
            None => error.fmt(f),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.failed {
            Failed::Unverifiable(_) => None,
            Failed::Lookup(error) => Some(error),
            Failed::Dial(error) => Some(&error.source),
        }
    }
}
