//! Reads `cors` of a route.

use model::{Cors, CorsOrigin};

use crate::diagnostic::{At, Diagnostic, Wrong, quote};
use crate::raw::http;
use crate::raw::table::{Table, is_empty_list};

pub(super) fn read(table: &mut Table<'_>) -> Option<Cors> {
    let mut table = table.table("cors")?;
    let origins = table.texts("origins", origin);
    if is_empty_list(table.peek("origins")) {
        table.problems.report(
            Diagnostic::error("no origin would be allowed", table.span_of("origins"), "empty")
                .help("leave `cors` out, or write origins = [\"https://app.example.com\"]"),
        );
    }
    let methods = table.texts("methods", http::method).unwrap_or_default();
    let headers = table.texts("headers", http::field_name).unwrap_or_default();
    let expose = table.texts("expose", http::field_name).unwrap_or_default();
    let credentials = table.boolean("credentials");
    let max_age = table.duration_if("max_age").map(|at| at.value);
    let origins = origins.unwrap_or_default();
    if credentials {
        let any = origins.iter().find(|at| at.value == CorsOrigin::Any);
        let any = any.map(|at| at.span.clone());
        let lists = [&methods, &headers, &expose];
        let listed = lists.into_iter().flatten().filter(|at| at.value == "*");
        for span in any.into_iter().chain(listed.map(|at| at.span.clone())) {
            table.problems.report(
                Diagnostic::error("\"*\" and credentials exclude each other", span, "everything")
                    .other(table.span_of("credentials"), "with credentials")
                    .help("list what is meant: with credentials browsers do not accept \"*\""),
            );
        }
    }
    table.finish();
    Some(Cors {
        origins: origins.into_iter().map(|at| at.value).collect(),
        methods: joined(&methods),
        headers: joined(&headers),
        expose: joined(&expose),
        credentials,
        max_age,
    })
}

fn joined(list: &[At<String>]) -> String {
    list.iter().map(|at| &*at.value).collect::<Vec<_>>().join(", ")
}

fn origin(text: &str) -> Result<CorsOrigin, Wrong> {
    if let Some(origin) = CorsOrigin::parse(text) {
        return Ok(origin);
    }
    let wrong = Wrong::new("not an origin");
    let meant = match text.split_once("://") {
        Some((scheme, rest)) => rest.split('/').next().map(|host| format!("{scheme}://{host}")),
        None => Some(format!("https://{text}")),
    };
    Err(match meant.filter(|meant| CorsOrigin::parse(meant).is_some()) {
        Some(meant) => wrong.help(format!(
            "an origin is a scheme, a host and perhaps a port: write {}",
            quote(&meant)
        )),
        None => {
            wrong.help("write one, as in \"https://app.example.com\" or \"https://*.example.com\"")
        }
    })
}
