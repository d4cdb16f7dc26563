//! Keys of `maintenance`.

use std::time::Duration;

use model::Maintenance;

use super::duration;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

/// `maintenance` of a route or a service.
pub(super) const MAINTENANCE: Kind = Kind::Either(&[Kind::Table(&TABLE), Kind::Boolean]);

static TABLE: TableSpec = TableSpec {
    heading: "maintenance of [[route]] and [service.NAME]",
    path: "maintenance",
    doc: "Maintenance: Weir answers with 503 (`maintenance`) and sends nothing to the servers. Requests that are already at a server are finished, and health checks go on. `true` for the defaults. `weir maintenance` does the same at run time; either one is enough. See docs/operations.md.",
    example: "[[route]]\nservice = \"shop\"\n\n[service.shop]\nmaintenance = { retry_after = \"10m\" }\nserver = [{ address = \"10.0.1.5:8080\" }]\n",
    keys: &[key(
        "retry_after",
        duration(Duration::from_secs(1), Maintenance::RETRY_AFTER_MAX),
        Absent::Then("no Retry-After"),
        "When clients should come back: the `Retry-After` of the response, in whole seconds.",
    )],
};
