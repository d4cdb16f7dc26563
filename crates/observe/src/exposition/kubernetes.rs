//! Metric families of the connection to Kubernetes.

use super::KubernetesGauges;
use super::families::{Families, Kind};

/// A gauge: name, help, value.
type Value = (&'static str, &'static str, fn(&KubernetesGauges) -> u64);

const VALUES: [Value; 5] = [
    (
        "weir_kubernetes_connected",
        "1 while the API server of Kubernetes answers. While it does not, Weir serves what it knows.",
        |one| u64::from(one.is_connected),
    ),
    (
        "weir_kubernetes_leading",
        "1 while this instance writes statuses and Services of Kubernetes. Of all instances one does.",
        |one| u64::from(one.is_leading),
    ),
    (
        "weir_kubernetes_failing",
        "Kinds of Kubernetes objects that cannot be read; those that are known stay in use.",
        |one| one.failing as u64,
    ),
    (
        "weir_kubernetes_unreadable",
        "Kubernetes objects that Weir cannot read and ignores.",
        |one| one.unreadable as u64,
    ),
    (
        "weir_kubernetes_writes_waiting",
        "Writes of statuses and Services of Kubernetes that wait or are under way.",
        |one| one.writes_waiting as u64,
    ),
];

pub(super) fn write_kubernetes(gauges: &KubernetesGauges, families: &mut Families) {
    for (name, help, value) in VALUES {
        families.family(name, Kind::Gauge, None, help).sample(&[], value(gauges));
    }
}
