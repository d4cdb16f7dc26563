//! TLS of listeners: certificates, and how certificates of clients are verified.

use crate::grants::GroupKind;
use crate::ir::{Certificate, ClientMode, ClientValidation};
use crate::objects::GATEWAY_GROUP;
use crate::objects::gateway::{self, Gateway, Listener};
use crate::resolve::cluster::Cluster;
use crate::resolve::secret::{self, Referrer};
use crate::resolve::status::Problem;

/// Returns the valid certificates of a listener, and a problem for each other reference.
pub fn certificates(
    cluster: &Cluster<'_>,
    from: Referrer<'_>,
    spec: &Listener,
) -> (Vec<Certificate>, Vec<Problem>) {
    let references = spec.tls.as_ref().map_or(&[][..], |tls| &tls.certificate_refs);
    let mut valid = Vec::new();
    let mut problems = Vec::new();
    for reference in references {
        match secret::certificate(cluster, from, reference, "InvalidCertificateRef") {
            Ok(certificate) => valid.push(certificate),
            Err(problem) => problems.push(problem),
        }
    }
    if references.is_empty() {
        let message = "tls.certificateRefs is empty. Refer to a Secret with a certificate.";
        problems.push(Problem::new("InvalidCertificateRef", message));
    }
    (valid, problems)
}

/// Returns how a Gateway verifies certificates of clients at a port.
pub fn client_validation_of(gateway: &Gateway, port: u16) -> Option<&gateway::ClientValidation> {
    let frontend = gateway.spec.tls.as_ref()?.frontend.as_ref()?;
    let own = frontend.per_port.iter().find(|one| one.port == port);
    own.map_or(&frontend.default, |one| &one.tls).validation.as_ref()
}

/// Resolves how certificates of clients are verified, and returns a problem for each invalid reference. The first
/// result is an error if no reference is valid.
pub fn client_validation(
    cluster: &Cluster<'_>,
    gateway: &Gateway,
    stated: &gateway::ClientValidation,
) -> (Result<ClientValidation, Problem>, Vec<Problem>) {
    let kind = GroupKind { group: GATEWAY_GROUP, kind: "Gateway" };
    let from = Referrer { kind, home: &gateway.metadata.namespace };
    let mut authorities = Vec::new();
    let mut problems = Vec::new();
    for reference in &stated.ca_certificate_refs {
        match secret::authorities(
            cluster,
            from,
            reference,
            "InvalidCACertificateRef",
            "InvalidCACertificateKind",
        ) {
            Ok(one) => authorities.push(one),
            Err(problem) => problems.push(problem),
        }
    }
    if authorities.is_empty() {
        let message = "The Gateway's tls.frontend refers to no valid CA certificate, see the \
                       condition ResolvedRefs.";
        return (Err(Problem::new("NoValidCACertificate", message)), problems);
    }
    let mode = match stated.mode.as_deref() {
        None | Some("AllowValidOnly") => ClientMode::AllowValidOnly,
        Some("AllowInsecureFallback") => ClientMode::AllowInsecureFallback,
        Some(other) => {
            let message =
                format!("The Gateway's tls.frontend has the mode {other}, which is not supported.");
            return (Err(Problem::new("UnsupportedValue", message)), problems);
        }
    };
    (Ok(ClientValidation { authorities, mode }), problems)
}
