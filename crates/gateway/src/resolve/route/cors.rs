//! The filter CORS: its lists become values of header fields.

use super::matches::METHODS;
use super::syntax;
use crate::hosts;
use crate::objects::route::Cors;
use crate::resolve::status::Problem;

/// Checks the lists of a filter.
///
/// # Errors
///
/// Why the rule is invalid.
pub fn check(stated: &Cors) -> Result<(), Problem> {
    if let Some(origin) = stated.allow_origins.iter().find(|text| !is_origin(text)) {
        return Err(Problem::unsupported(format!(
            "cors.allowOrigins has {origin:?}. Use * or a form like https://a.example.com or \
             https://*.example.com:8443."
        )));
    }
    let is_method = |text: &String| text == "*" || METHODS.contains(&text.as_str());
    if let Some(method) = stated.allow_methods.iter().find(|text| !is_method(text)) {
        return Err(Problem::unsupported(format!(
            "cors.allowMethods has {method:?}. Use * or a method."
        )));
    }
    // The token `*` is a wildcard.
    stated.allow_headers.iter().chain(&stated.expose_headers).try_for_each(|name| {
        syntax::field_name(name)?;
        Ok(())
    })
}

/// Returns whether a text is `*` or `scheme://host:port`, whose host may be `*` or begin with `*.`.
fn is_origin(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let (host, port) = rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)));
    let is_port =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok();
    // Unlike host names of the API, origins may have IPv4 addresses and capital letters.
    let is_host = host == "*"
        || host.parse::<std::net::Ipv4Addr>().is_ok()
        || hosts::host(&host.to_ascii_lowercase()).is_ok();
    is_host && port.is_none_or(is_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_only_what_fields_may_have() {
        for (text, is_valid) in [
            (r#"{"allowOrigins": ["*"], "allowMethods": ["*"], "allowHeaders": ["*"]}"#, true),
            (r#"{"allowOrigins": ["https://a.example.com", "http://*.B.example:80"]}"#, true),
            (
                r#"{"allowOrigins": ["https://*", "http://10.0.0.1:8080", "http://localhost"]}"#,
                true,
            ),
            (r#"{"allowOrigins": ["https://a.*.example"]}"#, false),
            (r#"{"allowOrigins": ["https://a.example/path"]}"#, false),
            (r#"{"allowOrigins": ["https://a.example:99999"]}"#, false),
            (r#"{"allowOrigins": ["ftp://a.example"]}"#, false),
            (r#"{"allowOrigins": ["https://a.example\r\nx: y"]}"#, false),
            (r#"{"allowMethods": ["GET", "PATCH"], "exposeHeaders": ["X-A"]}"#, true),
            (r#"{"allowMethods": ["GET\r\n"]}"#, false),
            (r#"{"allowHeaders": ["a, b"]}"#, false),
            (r#"{"exposeHeaders": ["a\r\nb: c"]}"#, false),
        ] {
            let cors: Cors = serde_json::from_str(text).unwrap();
            assert_eq!(check(&cors).is_ok(), is_valid, "{text}");
        }
    }
}
