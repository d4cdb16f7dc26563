//! Keys of `error_page`, and of sets of statuses.

use super::{FIELD_NAME, SECRET, form, patterned};
use crate::schema::spec::{Absent, Kind, TableSpec, key};

const RANGE_PATTERN: &str = "^[2-5]([0-9]{2}(-[2-5][0-9]{2})?|xx)$";
const STATUS_RANGE: Kind = Kind::Text(patterned("status range", RANGE_PATTERN));
const STATUS: Kind = Kind::Integer { min: 200, max: 599 };
const STATUS_OR_RANGE: Kind = Kind::Either(&[STATUS, STATUS_RANGE]);
/// `200`, `"2xx"`, `"200-399"`, or a list of these.
pub(super) const STATUSES: Kind =
    Kind::Either(&[STATUS, STATUS_RANGE, Kind::List(&STATUS_OR_RANGE)]);

/// `error_page` of a listener, a route or a service.
pub(super) const ERROR_PAGES: Kind = Kind::Tables(&ERROR_PAGE);

static ERROR_PAGE: TableSpec = TableSpec {
    heading: "error_page of [[listener]], [[route]] and [service.NAME]",
    path: "error_page",
    doc: "Content in place of the responses that Weir generates for errors. It never replaces a server's response, nor the answer to a gRPC call. Those of the route are tried first, then those of the service, then those of the listener; in each list, the first entry that is for the error. If later entries of that list are for the error too, with other media types, the client's `Accept` decides, and the response has `Vary: Accept`. `status`, `cause` or both are required, and one of `file` and `body`. See docs/routing.md.",
    example: "[[listener]]\naddress = \"0.0.0.0:8080\"\nerror_page = [{ status = \"4xx\", body = \"Not here.\\n\" }, { status = [502, 503], cause = [\"destination_unavailable\"], body = \"{}\\n\", content_type = \"application/json\" }]\n\n[[route]]\npath = \"/api\"\nerror_page = [{ status = 429, body = \"Later.\\n\" }]\nservice = \"listings\"\n\n[service.listings]\nerror_page = [{ status = \"5xx\", file = \"icon.svg\", headers = { Cache-Control = \"no-store\" } }]\nserver = [{ address = \"10.0.1.5:8080\" }]\n",
    keys: &[
        key(
            "status",
            STATUSES,
            Absent::Then("any"),
            "The statuses that it is for, from 400 to 599: `503`, `\"5xx\"`, `\"500-504\"`, or a list of these.",
        ),
        key(
            "cause",
            Kind::OneOrMore(&Kind::Text(form("cause"))),
            Absent::Then("any"),
            "The causes that it is for, as the access log and docs/causes.md name them.",
        ),
        key(
            "file",
            Kind::Text(form("file path")),
            Absent::Then("see above"),
            "A file with the content, at most 1 MiB. A changed file takes effect like a change of this one.",
        ),
        key("body", SECRET, Absent::Then("see above"), "The content, instead of `file`."),
        key(
            "content_type",
            Kind::Text(form("media type")),
            Absent::Then(
                "for `file`, by the ending of its name; for `body`, `\"text/plain; charset=utf-8\"`",
            ),
            "The value of Content-Type.",
        ),
        key(
            "headers",
            Kind::Map(FIELD_NAME, &SECRET),
            Absent::Then("none"),
            "Further fields. Without `Cache-Control` among them, the response has `Cache-Control: no-store`.",
        ),
    ],
};
