//! References to certificates in Secrets and to authorities in ConfigMaps.

use std::sync::Arc;

use super::cluster::Cluster;
use super::status::Problem;
use crate::grants::GroupKind;
use crate::ir::{Authorities, Certificate};
use crate::objects::Key;
use crate::objects::reference::ObjectRef;

/// An object that refers to others.
#[derive(Clone, Copy, Debug)]
pub struct Referrer<'a> {
    /// Its kind.
    pub kind: GroupKind<'a>,
    /// Its namespace.
    pub home: &'a Arc<str>,
}

impl Referrer<'_> {
    /// Checks that it may refer to an object.
    ///
    /// # Errors
    ///
    /// A problem with the reason `RefNotPermitted`.
    pub fn check_grant(
        &self,
        cluster: &Cluster<'_>,
        kind: &str,
        target: &Key,
    ) -> Result<(), Problem> {
        if cluster.allows(self.kind, self.home, kind, target) {
            return Ok(());
        }
        let from = self.kind.kind;
        if cluster.objects.hidden.contains(&target.namespace) {
            let message = format!(
                "{kind} {target} is in a namespace of which Weir may not read all kinds of objects, \
                 so it uses nothing in it. Check Weir's Role in namespace {}.",
                target.namespace
            );
            return Err(Problem::new("RefNotPermitted", message));
        }
        Err(Problem::new(
            "RefNotPermitted",
            format!(
                "{kind} {target} is in another namespace. Create a ReferenceGrant in namespace {} \
                 that permits references from {from} in namespace {} to {kind} {}.",
                target.namespace, self.home, target.name
            ),
        ))
    }
}

/// Returns the certificate in a Secret. `invalid` is the reason of a reference that cannot be used.
///
/// # Errors
///
/// Why the reference cannot be used.
pub fn certificate(
    cluster: &Cluster<'_>,
    from: Referrer<'_>,
    reference: &ObjectRef,
    invalid: &'static str,
) -> Result<Certificate, Problem> {
    if !reference.is("", "Secret", "Secret") {
        return Err(Problem::new(
            invalid,
            format!(
                "{} is not supported as a certificate. Refer to a Secret.",
                described(reference)
            ),
        ));
    }
    let key = reference.key(from.home);
    from.check_grant(cluster, "Secret", &key)?;
    match cluster.certificate(&key) {
        Some(Ok(certificate)) => Ok(certificate.clone()),
        Some(Err(text)) => Err(Problem::new(invalid, format!("Secret {key} {text}."))),
        None => Err(Problem::new(
            invalid,
            format!("Secret {key} does not exist. Create it with the keys tls.crt and tls.key."),
        )),
    }
}

/// Returns the authorities in a ConfigMap. `invalid` and `invalid_kind` are the reasons of a reference that cannot be
/// used.
///
/// # Errors
///
/// Why the reference cannot be used.
pub fn authorities(
    cluster: &Cluster<'_>,
    from: Referrer<'_>,
    reference: &ObjectRef,
    invalid: &'static str,
    invalid_kind: &'static str,
) -> Result<Authorities, Problem> {
    if !reference.is("", "ConfigMap", "ConfigMap") {
        return Err(Problem::new(
            invalid_kind,
            format!(
                "{} is not supported as CA certificates. Refer to a ConfigMap.",
                described(reference)
            ),
        ));
    }
    let key = reference.key(from.home);
    from.check_grant(cluster, "ConfigMap", &key)?;
    match cluster.authorities(&key) {
        Some(Ok(authorities)) => Ok(authorities.clone()),
        Some(Err(text)) => Err(Problem::new(invalid, format!("ConfigMap {key} {text}."))),
        None => Err(Problem::new(
            invalid,
            format!("ConfigMap {key} does not exist. Create it with the key ca.crt."),
        )),
    }
}

/// Returns a reference as text: `Kind.group name`.
fn described(reference: &ObjectRef) -> String {
    let kind = reference.kind.as_deref().unwrap_or("an object");
    match reference.group.as_deref().unwrap_or_default() {
        "" => format!("{kind} {}", reference.name),
        group => format!("{kind}.{group} {}", reference.name),
    }
}
