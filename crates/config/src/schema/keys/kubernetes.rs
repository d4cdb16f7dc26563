//! The keys of `[kubernetes]`.

use super::autoscaler::EXTERNAL_METRICS;
use super::{FILE, TEXT, form, patterned};
use crate::defaults;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

const NAMESPACE: Kind = Kind::Text(patterned("namespace", "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"));

pub(super) static KUBERNETES: TableSpec = TableSpec {
    heading: "[kubernetes]",
    path: "kubernetes",
    doc: "Connects Weir to Kubernetes: it serves the Gateways of its GatewayClasses (Gateway API) and the Ingresses of its IngressClasses, and services may take their servers from Kubernetes. The table may be empty. It takes effect with the next start. A program that was built without the feature `kubernetes` does not start with this table. See [docs/kubernetes.md](kubernetes.md).",
    example: "[kubernetes]\nkubeconfig = \"/etc/weir/kubeconfig\"\ncontroller = \"example.com/weir\"\nnamespaces = [\"shop\", \"accounts\"]\nnamespace = \"weir\"\nexternal_names = false\npods = { \"app.kubernetes.io/name\" = \"weir\" }\nport_first = 10_000\nport_last = 10_999\n\n[service.shop]\ndiscover = { kubernetes = \"shop/web:http\" }\n",
    keys: &[
        key(
            "kubeconfig",
            FILE,
            Absent::Then(
                "the service account of Weir's Pod; elsewhere `$KUBECONFIG` or `~/.kube/config`",
            ),
            "The file with the address of the API server and credentials. An absolute path.",
        ),
        key(
            "controller",
            Kind::Text(patterned("controller name", "^[^/]+/.+$")),
            Absent::Text(model::GATEWAY_CONTROLLER),
            "The `controllerName` of the GatewayClasses that this balancer serves. The `controller` of its IngressClasses is the same, or `weir.dev/ingress-controller` with the default. Give each installation of Weir in a cluster its own.",
        ),
        key(
            "namespaces",
            Kind::List(&NAMESPACE),
            Absent::Then("all"),
            "The namespaces whose objects are read. Weir then needs no permissions for objects in others.",
        ),
        key(
            "namespace",
            NAMESPACE,
            Absent::Then("that of Weir's Pod; outside of a cluster `default`"),
            "The namespace of the objects that Weir creates: Services for Gateways, and the Lease by which one of several instances becomes the writer.",
        ),
        key(
            "external_names",
            Kind::Boolean,
            Absent::Boolean(false),
            "Whether Services of type `ExternalName` may be backends. Anyone who may create Services could then send requests to any host that Weir reaches (CVE-2021-25740).",
        ),
        key(
            "pods",
            Kind::Map(form("label"), &TEXT),
            Absent::Then("`{ \"app.kubernetes.io/name\" = \"weir\" }`"),
            "Labels that Weir's own Pods have, and no others in their namespace. Each Gateway gets a Service of type `LoadBalancer`, which selects them.",
        ),
        key(
            "port_first",
            Kind::Integer { min: 1, max: 65_535 },
            Absent::Integer(defaults::GATEWAY_PORT_FIRST as u64),
            "The first port of Weir's Pods that Gateways may use. Each port of each Gateway is another port of the Pods.",
        ),
        key(
            "port_last",
            Kind::Integer { min: 1, max: 65_535 },
            Absent::Integer(defaults::GATEWAY_PORT_LAST as u64),
            "The last port of Weir's Pods that Gateways may use.",
        ),
        key(
            "addresses",
            Kind::List(&Kind::Text(form("IP address"))),
            Absent::Then("each Gateway gets a Service"),
            "For Weir outside of the cluster: addresses of this machine. Each Gateway and each IngressClass in use gets one of them, and Weir listens there on the Gateway's own ports. With it, `pods`, `port_first` and `port_last` have no effect.",
        ),
        key(
            "external_metrics",
            Kind::Table(&EXTERNAL_METRICS),
            Absent::Then("not served"),
            "From where HorizontalPodAutoscalers read how many servers services should have.",
        ),
    ],
};
