//! One order from start to certificate (RFC 8555 section 7.4), or the rest of one that was under
//! way when the process ended.
//!
//! ```text
//! none ──new order──▶ pending ──challenges──▶ ready ──CSR──▶ processing ──▶ valid ──▶ stored
//!   ▲                    │                                      │
//!   └────── invalid, unknown to the authority, or refused ◀─────┘
//! ```
//!
//! The order's URL and the certificate's key are stored before anything depends on them, so at any
//! moment the process may end: the next attempt continues with what the authority says the order's
//! state is.

mod challenge;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, CertificateIdentifier, Error, Identifier, NewOrder, Order, OrderStatus, RetryPolicy,
};
use model::Acme;
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use tls::{Challenges, SharedCertificates};

use crate::failure::{Failed, Kind};
use crate::store::{Lock, State, StoredOrder, parse};

pub(crate) use challenge::Answers;

/// How the authority is asked whether an order has advanced: after a quarter of a second, then ever
/// less often, or as its `Retry-After` says. In total for each of validation and issuance: an order
/// that takes longer is continued by the next attempt.
const POLLING: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.5)
    .timeout(Duration::from_secs(180));

/// What an order is for, and what it uses.
pub(crate) struct Job<'a> {
    pub(crate) settings: &'a Acme,
    pub(crate) names: &'a [String],
    pub(crate) state: &'a State,
    pub(crate) lock: &'a Lock,
    pub(crate) challenges: &'a Arc<Challenges>,
    pub(crate) shared: &'a SharedCertificates,
    /// The certificate that is replaced (RFC 9773 section 5).
    pub(crate) replaces: Option<&'a CertificateIdentifier<'static>>,
}

impl Job<'_> {
    /// Obtains the certificate and stores it. `answers`: those of the order under way, if there is
    /// one; none are left if the order has ended.
    pub(crate) async fn run(&self, account: &Account, answers: &mut Answers) -> Result<(), Failed> {
        let (mut order, key) = if let Some(found) = self.under_way(account).await? {
            found
        } else {
            answers.clear();
            self.new_order(account).await?
        };
        let result = self.complete(&mut order, &key, answers).await;
        // A certificate or a refusal ends the order; after anything else it is continued.
        if result.as_ref().is_ok() || result.as_ref().is_err_and(|e| !e.leaves_the_order()) {
            self.state.forget_order(self.lock, self.names);
            answers.clear();
        }
        result
    }

    /// Returns the order that was under way, if it can still become a certificate.
    async fn under_way(&self, account: &Account) -> Result<Option<(Order, KeyPair)>, Failed> {
        let stored = match self.state.order(self.names) {
            Ok(None) => return Ok(None),
            Ok(Some(stored)) => stored,
            Err(error) => {
                tracing::warn!(%error, "an ACME order is started again");
                self.state.forget_order(self.lock, self.names);
                return Ok(None);
            }
        };
        let found = account.order(stored.url).await;
        let failed = match (found, KeyPair::from_pem(&stored.key)) {
            (Ok(mut order), Ok(key)) => {
                if order.state().status != OrderStatus::Invalid {
                    return Ok(Some((order, key)));
                }
                None
            }
            (Err(error), _) => Some(Failed::of("cannot continue an ACME order", &error)),
            _ => None,
        };
        match failed {
            // The authority cannot say now what the order's state is.
            Some(failed) if failed.leaves_the_order() => Err(failed),
            _ => {
                self.state.forget_order(self.lock, self.names);
                Ok(None)
            }
        }
    }

    async fn new_order(&self, account: &Account) -> Result<(Order, KeyPair), Failed> {
        let identifiers: Vec<Identifier> = self.names.iter().map(|name| identifier(name)).collect();
        let plain = || {
            let wanted = NewOrder::new(&identifiers);
            match &self.settings.profile {
                Some(profile) => wanted.profile(profile),
                None => wanted,
            }
        };
        let failed = |error: &Error| Failed::of("the order was not accepted", error);
        let is_refusal = |error: &Error| {
            let failed = failed(error);
            // Pebble answers 500 if it does not know the certificate to replace.
            let is_answer = matches!(error, Error::Api(_)) && failed.kind == Kind::Unavailable;
            is_answer || !failed.leaves_the_order()
        };
        let ordered = match self.replaces {
            None => account.new_order(&plain()).await,
            Some(replaced) => {
                match account.new_order(&plain().replaces(replaced.clone())).await {
                    // `replaces` is a favour: an authority that does not know the certificate, or
                    // has its replacement already (RFC 9773 section 7.4), accepts an order without.
                    Err(error) if is_refusal(&error) => {
                        tracing::debug!(%error, "an order that replaces a certificate was refused");
                        account.new_order(&plain()).await
                    }
                    other => other,
                }
            }
        };
        let order = ordered.map_err(|error| failed(&error))?;
        let key = KeyPair::generate().map_err(|error| no_csr(&error))?;
        let stored = StoredOrder { url: order.url().to_owned(), key: key.serialize_pem() };
        self.state.put_order(self.lock, self.names, &stored)?;
        Ok((order, key))
    }

    /// Takes the order from whatever state it is in to a stored certificate.
    async fn complete(
        &self,
        order: &mut Order,
        key: &KeyPair,
        answers: &mut Answers,
    ) -> Result<(), Failed> {
        if order.state().status == OrderStatus::Pending {
            self.validate(order, answers).await?;
        }
        if order.state().status == OrderStatus::Ready {
            let csr = self.csr(key)?;
            let finalised = order.finalize_csr(&csr).await;
            finalised.map_err(|error| Failed::of("the certificate was not issued", &error))?;
        }
        // Without this, a certificate that is there already would cost another poll.
        let issued = match order.state().status {
            OrderStatus::Valid => order.certificate().await.map(Option::unwrap_or_default),
            _ => order.poll_certificate(&POLLING).await,
        };
        let chain = issued.map_err(|error| Failed::of("the certificate was not issued", &error))?;
        let pem = self.checked(&key.serialize_pem(), &chain)?;
        Ok(self.state.put_certificate(self.lock, self.names, pem.as_bytes())?)
    }

    /// Answers the challenges of all names and waits until the order is ready.
    async fn validate(&self, order: &mut Order, answers: &mut Answers) -> Result<(), Failed> {
        challenge::begin(self, order, answers).await?;
        let mut failed = match order.poll_ready(&POLLING).await {
            Ok(OrderStatus::Invalid) => {
                Failed::new(Kind::Refused, "the authority could not validate every name")
            }
            Ok(_) => return Ok(()),
            Err(error) => Failed::of("the authority could not validate every name", &error),
        };
        if !failed.leaves_the_order() {
            failed.names = challenge::reasons(order).await;
        }
        answers.redact(&mut failed.what);
        for (_, why) in &mut failed.names {
            answers.redact(why);
        }
        Err(failed)
    }

    fn csr(&self, key: &KeyPair) -> Result<Vec<u8>, Failed> {
        let mut params = CertificateParams::new(self.names).map_err(|error| no_csr(&error))?;
        params.distinguished_name = DistinguishedName::new();
        let csr = params.serialize_request(key).map_err(|error| no_csr(&error))?;
        Ok(csr.der().to_vec())
    }

    /// Returns key and chain in one text, if they are a usable certificate for the names.
    fn checked(&self, key: &str, chain: &str) -> Result<String, Failed> {
        let unusable = |why: String| {
            Failed::new(
                Kind::Refused,
                format!("the authority issued an unusable certificate: {why}"),
            )
        };
        let pem = format!("{key}{chain}");
        parse(Path::new("issued"), pem.as_bytes().into(), self.names).map_err(unusable)?;
        Ok(pem)
    }
}

fn no_csr(error: &rcgen::Error) -> Failed {
    Failed::new(Kind::Local, format!("cannot request a certificate for these names: {error}"))
}

/// Converts a name: an IP address (RFC 8738) or a DNS name.
fn identifier(name: &str) -> Identifier {
    match name.parse::<IpAddr>() {
        Ok(address) => Identifier::Ip(address),
        Err(_) => Identifier::Dns(name.to_owned()),
    }
}
