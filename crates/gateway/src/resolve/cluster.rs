//! The objects that Weir reads, and what is looked up in them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::Material;

use super::decode;
use crate::grants::{Grants, GroupKind};
use crate::ir::{Authorities, Certificate};
use crate::objects::Key;
use crate::objects::core::{ConfigMap, Namespace, Secret, Service};
use crate::objects::gateway::{Gateway, GatewayClass, ListenerSet};
use crate::objects::ingress::{Ingress, IngressClass};
use crate::objects::policy::{BackendTlsPolicy, ReferenceGrant, RoutePolicy, ServicePolicy};
use crate::objects::route::{ConnectionRoute, GrpcRoute, HttpRoute};

/// The `controller` of the IngressClasses that Weir serves, unless its caller names another one.
pub const INGRESS_CONTROLLER: &str = "weir.dev/ingress-controller";

/// All objects of the cluster that Weir reads, by key, EndpointSlices excepted.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// GatewayClasses.
    pub classes: BTreeMap<Key, Arc<GatewayClass>>,
    /// Gateways.
    pub gateways: BTreeMap<Key, Arc<Gateway>>,
    /// ListenerSets.
    pub listener_sets: BTreeMap<Key, Arc<ListenerSet>>,
    /// HTTPRoutes.
    pub http_routes: BTreeMap<Key, Arc<HttpRoute>>,
    /// GRPCRoutes.
    pub grpc_routes: BTreeMap<Key, Arc<GrpcRoute>>,
    /// TLSRoutes.
    pub tls_routes: BTreeMap<Key, Arc<ConnectionRoute>>,
    /// TCPRoutes.
    pub tcp_routes: BTreeMap<Key, Arc<ConnectionRoute>>,
    /// ReferenceGrants.
    pub grants: BTreeMap<Key, Arc<ReferenceGrant>>,
    /// BackendTLSPolicies.
    pub policies: BTreeMap<Key, Arc<BackendTlsPolicy>>,
    /// ServicePolicies.
    pub service_policies: BTreeMap<Key, Arc<ServicePolicy>>,
    /// RoutePolicies.
    pub route_policies: BTreeMap<Key, Arc<RoutePolicy>>,
    /// Services.
    pub services: BTreeMap<Key, Arc<Service>>,
    /// Secrets.
    pub secrets: BTreeMap<Key, Arc<Secret>>,
    /// ConfigMaps.
    pub config_maps: BTreeMap<Key, Arc<ConfigMap>>,
    /// Ingresses.
    pub ingresses: BTreeMap<Key, Arc<Ingress>>,
    /// IngressClasses, by a key without a namespace.
    pub ingress_classes: BTreeMap<Key, Arc<IngressClass>>,
    /// Namespaces, by a key without a namespace.
    pub namespaces: BTreeMap<Key, Arc<Namespace>>,
    /// The namespaces of which Weir may not read everything. Nothing in them is here.
    pub hidden: BTreeSet<Arc<str>>,
}

/// How Weir resolves objects.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Weir's name in GatewayClasses.
    pub controller_name: Arc<str>,
    /// Weir's name in IngressClasses; [`INGRESS_CONTROLLER`] by default.
    pub ingress_controller_name: Arc<str>,
    /// Whether Services of type `ExternalName` are allowed. They let a user of a namespace reach hosts that network
    /// policies protect (CVE-2021-25740).
    pub allow_external_names: bool,
    /// What can be used.
    pub checks: Checks,
}

/// Checks of certificates and authorities by the library that will use them, and what it has itself. An error is the rest
/// of a sentence that begins with the name of the object.
#[derive(Clone, Copy, Debug)]
pub struct Checks {
    /// Of a certificate with its private key.
    pub certificate: fn(&Certificate) -> Result<(), String>,
    /// Of authorities.
    pub authorities: fn(&Authorities) -> Result<(), String>,
    /// Returns the authorities that this machine trusts, PEM.
    pub system: fn() -> Option<Material>,
}

impl Checks {
    /// Returns checks that find nothing wrong.
    pub fn none() -> Checks {
        Checks { certificate: |_| Ok(()), authorities: |_| Ok(()), system: || None }
    }
}

/// The objects, with an index of the ReferenceGrants. Secrets and ConfigMaps are decoded at most once.
#[derive(Debug)]
pub struct Cluster<'a> {
    /// The objects.
    pub objects: &'a Objects,
    /// How they are resolved.
    pub settings: &'a Settings,
    grants: Grants,
}

impl<'a> Cluster<'a> {
    /// Indexes the ReferenceGrants.
    pub fn new(objects: &'a Objects, settings: &'a Settings) -> Cluster<'a> {
        let grants = Grants::new(objects.grants.values().map(AsRef::as_ref));
        Cluster { objects, settings, grants }
    }

    /// Returns the users in a Secret: all that refer to it share the bytes.
    ///
    /// # Errors
    ///
    /// The rest of a sentence that begins with the Secret.
    pub fn users(&self, key: &Key) -> Result<Arc<[u8]>, String> {
        let secret = self.secret(key)?;
        secret.users.or(|| decode::value(secret, "auth")).clone()
    }

    /// Returns the key set in a ConfigMap: all that refer to it share the bytes.
    ///
    /// # Errors
    ///
    /// The rest of a sentence that begins with the ConfigMap.
    pub fn keys(&self, key: &Key) -> Result<Arc<[u8]>, String> {
        let map = self.config_map(key)?;
        let read = || match map.data.get("jwks.json") {
            Some(text) => Ok(Arc::from(text.as_bytes())),
            None => Err("has no key jwks.json".to_owned()),
        };
        map.keys.or(read).clone()
    }

    /// Returns a Secret whose contents are known.
    ///
    /// # Errors
    ///
    /// The rest of a sentence that begins with the Secret.
    pub fn secret(&self, key: &Key) -> Result<&'a Secret, String> {
        let secret = self.objects.secrets.get(key).ok_or("does not exist")?;
        match &secret.unknown {
            Some(why) => Err(why.to_string()),
            None => Ok(secret),
        }
    }

    /// Returns a ConfigMap whose contents are known.
    ///
    /// # Errors
    ///
    /// The rest of a sentence that begins with the ConfigMap.
    pub fn config_map(&self, key: &Key) -> Result<&'a ConfigMap, String> {
        let map = self.objects.config_maps.get(key).ok_or("does not exist")?;
        match &map.unknown {
            Some(why) => Err(why.to_string()),
            None => Ok(map),
        }
    }

    /// Returns the certificate in a Secret, or what is wrong with the Secret. `None`: it does not exist.
    pub fn certificate(&self, key: &Key) -> Option<&Result<Certificate, String>> {
        let secret = self.objects.secrets.get(key)?;
        let check = self.settings.checks.certificate;
        let read = || decode::certificate(key, secret).and_then(|one| check(&one).map(|()| one));
        Some(secret.certificate.or(read))
    }

    /// Returns the authorities in a ConfigMap, or what is wrong with the ConfigMap. `None`: it does not exist.
    pub fn authorities(&self, key: &Key) -> Option<&Result<Authorities, String>> {
        let map = self.objects.config_maps.get(key)?;
        let check = self.settings.checks.authorities;
        let read = || decode::authorities(key, map).and_then(|one| check(&one).map(|()| one));
        Some(map.authorities.or(read))
    }

    /// Returns whether an object of the kind `from` in the namespace `home` may refer to `target`.
    pub fn allows(&self, from: GroupKind<'_>, home: &str, kind: &str, target: &Key) -> bool {
        self.grants.allow(from, home, GroupKind { group: "", kind }, target)
    }

    /// Returns the labels of a namespace, if it exists.
    pub fn labels(&self, namespace: &Arc<str>) -> Option<&'a BTreeMap<String, String>> {
        let key = Key::new("", Arc::clone(namespace));
        self.objects.namespaces.get(&key).map(|namespace| &namespace.metadata.labels)
    }
}
