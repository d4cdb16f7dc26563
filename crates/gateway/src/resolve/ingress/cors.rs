//! Which pages of other origins may read responses (CORS).

use model::CorsOrigin;

use super::annotations::{Annotations, list, shown};
use crate::objects::route::Cors;
use crate::resolve::route::syntax;

const METHODS: &str = "GET, PUT, POST, DELETE, PATCH, OPTIONS";
const HEADERS: &str = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,\
                       Content-Type,Range,Authorization";
const MAX_AGE_S: u32 = 1_728_000;
/// At most this many entries of a list.
const ENTRIES_MAX: usize = 100;

/// Reads the rules, with the defaults of ingress-nginx.
pub fn read(annotations: &mut Annotations<'_>) -> Option<Cors> {
    let is_on = annotations.is_on("enable-cors");
    let origins = annotations.text("cors-allow-origin").unwrap_or("*");
    let methods = tokens(annotations, "cors-allow-methods", METHODS);
    let headers = tokens(annotations, "cors-allow-headers", HEADERS);
    let expose = tokens(annotations, "cors-expose-headers", "");
    let credentials = annotations.flag("cors-allow-credentials");
    let max_age = annotations.number("cors-max-age", 0..=31_536_000);
    if !is_on {
        return None;
    }
    let mut read = Vec::new();
    for origin in list(origins).take(ENTRIES_MAX) {
        if CorsOrigin::parse(origin).is_some() {
            read.push(origin.to_owned());
        } else {
            let why = format!("has {}, which is not an origin and is left out", shown(origin));
            annotations.remark("cors-allow-origin", &why);
        }
    }
    // With `*`, browsers send no credentials to ingress-nginx's answers either.
    let is_any = read.iter().any(|origin| origin == "*");
    if is_any && credentials == Some(true) {
        let advice = "Browsers ignore it for the origin *. Name the origins in cors-allow-origin.";
        annotations.note("cors-allow-credentials", advice);
    }
    if read.is_empty() {
        return None;
    }
    Some(Cors {
        allow_origins: read,
        allow_methods: methods,
        allow_headers: headers,
        expose_headers: expose,
        allow_credentials: credentials.unwrap_or(true) && !is_any,
        max_age: max_age.unwrap_or(MAX_AGE_S),
    })
}

/// Reads a list of tokens.
fn tokens(annotations: &mut Annotations<'_>, name: &str, default: &str) -> Vec<String> {
    let text = annotations.text(name).unwrap_or(default);
    let tokens: Vec<&str> = list(text).collect();
    let wrong = tokens.iter().find(|token| !syntax::is_token(token));
    if let Some(wrong) = wrong {
        let why = format!("has {}, which is not a name. The default is used", shown(wrong));
        annotations.remark(name, &why);
        return list(default).map(str::to_owned).collect();
    }
    tokens.into_iter().take(ENTRIES_MAX).map(str::to_owned).collect()
}
