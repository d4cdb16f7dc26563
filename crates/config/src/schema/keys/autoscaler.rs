//! The keys of `[keda]` and of `external_metrics`: listeners from which autoscalers read how many servers services
//! should have.

use super::ADDRESS;
use super::tls::LISTENER_TLS;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

pub(super) static KEDA: TableSpec = TableSpec {
    heading: "[keda]",
    path: "keda",
    doc: "A listener for KEDA's external scalers (`external` and `external-push`, over gRPC): KEDA reads how many servers a service with `scaling` should have. See [docs/scaling.md](scaling.md#keda).",
    example: "[keda]\naddress = \"0.0.0.0:9902\"\ntls = { certificates = [{ chain = \"a.pem\", key = \"a.key\" }] }\n",
    keys: &[
        key(
            "address",
            ADDRESS,
            Absent::Required,
            "The address that KEDA connects to. Without `client_certificates` in `tls`, everyone who reaches it can read the numbers, and nothing else. A change takes effect with the next start or upgrade.",
        ),
        key(
            "tls",
            Kind::Table(&LISTENER_TLS),
            Absent::Then("clear text (h2c)"),
            "TLS at `address`, with certificates from files, not by ACME. New certificates take effect with a reload.",
        ),
    ],
};

pub(super) static EXTERNAL_METRICS: TableSpec = TableSpec {
    heading: "external_metrics of [kubernetes]",
    path: "kubernetes.external_metrics",
    doc: "A listener for the external metrics API (`external.metrics.k8s.io/v1beta1`), from which HorizontalPodAutoscalers read how many servers a service with `scaling` should have. The API server of the cluster connects to it; an APIService registers it there, as Weir's Helm chart does. Clients are authenticated and authorized by the API server. See [docs/scaling.md](scaling.md#horizontalpodautoscaler).",
    example: "[kubernetes]\nexternal_metrics = { address = \"[::]:9443\", tls = { certificates = [{ chain = \"a.pem\", key = \"a.key\" }] } }\n",
    keys: &[
        key(
            "address",
            ADDRESS,
            Absent::Required,
            "The address that the API server connects to. A change takes effect with the next start.",
        ),
        key(
            "tls",
            Kind::Table(&LISTENER_TLS),
            Absent::Required,
            "The certificate, from files, not by ACME. New certificates take effect with a reload. It has no `client_certificates`: Weir asks clients for certificates, and reads from the cluster which authority signs that of the API server.",
        ),
    ],
};
