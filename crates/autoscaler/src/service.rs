//! A service with `scaling`, as autoscalers see it: its number, and the labels that select it.

use std::sync::Arc;

/// The name of the metric, which is that of the gauge.
pub const METRIC: &str = "weir_service_wanted_servers";

/// The group of the external metrics API.
pub(crate) const GROUP: &str = "external.metrics.k8s.io";
/// Its version.
pub(crate) const VERSION: &str = "v1beta1";

/// A service with `scaling`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scaled {
    /// Its name.
    pub name: Arc<str>,
    /// Where it comes from; `None`: from the configuration files.
    pub port: Option<KubernetesPort>,
    /// How many servers it should have.
    pub number: Number,
}

/// How many servers a service should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// So many.
    Known(u32),
    /// The load has not been measured yet.
    Unmeasured,
    /// There is neither a concurrency limit nor a target.
    Unlimited,
}

/// The port of a Service in Kubernetes from which a service was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesPort {
    /// The namespace of the Service.
    pub namespace: Arc<str>,
    /// The name of the Service.
    pub service: Arc<str>,
    /// The port's number.
    pub port: Arc<str>,
    /// Which of several services with this port it is: `grpc`, `as.shop.web`. `None`: the usual one.
    pub variant: Option<Arc<str>>,
}

impl KubernetesPort {
    /// Reads the name of a service whose servers are those of the Service `namespace/service` in Kubernetes. Gateways
    /// and Ingresses make names such as `shop/web:8080` and `shop/web:8080/grpc`. `None`: the files have the service.
    pub fn of(name: &str, namespace: &str, service: &str) -> Option<KubernetesPort> {
        let rest = name.strip_prefix(namespace)?.strip_prefix('/')?.strip_prefix(service)?;
        let rest = rest.strip_prefix(':')?;
        let (port, variant) = rest.split_once('/').map_or((rest, None), |(a, b)| (a, Some(b)));
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(KubernetesPort {
            namespace: namespace.into(),
            service: service.into(),
            port: port.into(),
            // The value of a label has no slash.
            variant: variant.map(|text| text.replace('/', ".").into()),
        })
    }
}

impl Scaled {
    /// Returns its labels, in a fixed order.
    pub fn labels(&self) -> Vec<(&'static str, &str)> {
        let Some(KubernetesPort { namespace, service, port, variant }) = &self.port else {
            return vec![("service", &*self.name)];
        };
        let mut labels =
            vec![("namespace", &**namespace), ("port", &**port), ("service", &**service)];
        labels.extend(variant.as_deref().map(|variant| ("variant", variant)));
        labels
    }

    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels().into_iter().find_map(|(own, value)| (own == key).then_some(value))
    }

    /// Returns whether clients in a namespace see it. Those of the files are seen in all.
    pub fn is_in(&self, namespace: &str) -> bool {
        self.port.as_ref().is_none_or(|port| *port.namespace == *namespace)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A service of the files, or one of Kubernetes' Service `shop/web` or `other/web` if the name is one.
    pub(crate) fn scaled(name: &str, number: Number) -> Scaled {
        let port = ["shop", "other"].iter().find_map(|it| KubernetesPort::of(name, it, "web"));
        Scaled { name: name.into(), port, number }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::scaled;
    use super::*;

    #[test]
    fn labels_are_those_of_the_service() {
        for (name, expected) in [
            ("listings", "service=listings"),
            ("shop/web:8080", "namespace=shop,port=8080,service=web"),
            ("shop/web:8080/grpc", "namespace=shop,port=8080,service=web,variant=grpc"),
            (
                "shop/web:80/as/shop/in/canary",
                "namespace=shop,port=80,service=web,variant=as.shop.in.canary",
            ),
            // Not the names that Gateways make.
            ("shop/web", "service=shop/web"),
            ("shop/web:http", "service=shop/web:http"),
            ("shop/web2:80", "service=shop/web2:80"),
        ] {
            let service = scaled(name, Number::Unmeasured);
            let labels: Vec<_> =
                service.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
            assert_eq!(labels.join(","), expected);
            assert_eq!(service.is_in("other"), !expected.starts_with("namespace"), "{name}");
            assert!(service.is_in("shop"));
        }
    }
}
