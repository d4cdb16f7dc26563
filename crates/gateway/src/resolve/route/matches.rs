//! The matches of HTTPRoutes and GRPCRoutes. Values that Weir does not know make the rule invalid.

use model::Pattern;

use super::syntax;
use crate::ir::request::{PathCondition, RequestMatch, ValueCondition, ValueTest};
use crate::objects::route::{GrpcMatch, HttpMatch, MethodMatch, PathMatch, ValueMatch};
use crate::resolve::status::Problem;

/// The methods of the API.
pub const METHODS: &[&str] =
    &["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

const EXPRESSION: &str = "RegularExpression";

/// Returns how many regular expressions a match of an HTTPRoute has.
pub fn http_expressions(stated: &HttpMatch) -> usize {
    usize::from(stated.path.kind == EXPRESSION)
        + value_expressions(&stated.headers)
        + value_expressions(&stated.query_params)
}

/// Returns how many regular expressions a match of a GRPCRoute has. A method counts as one.
pub fn grpc_expressions(stated: &GrpcMatch) -> usize {
    usize::from(stated.method.is_some()) + value_expressions(&stated.headers)
}

fn value_expressions(stated: &[ValueMatch]) -> usize {
    stated.iter().filter(|one| one.kind.as_deref() == Some(EXPRESSION)).count()
}

/// Reads a match of an HTTPRoute.
///
/// # Errors
///
/// The first value that is not supported.
pub fn http(stated: &HttpMatch) -> Result<RequestMatch, Problem> {
    if let Some(method) = stated.method.as_deref().filter(|method| !METHODS.contains(method)) {
        return Err(Problem::unsupported(format!("The method {method} is not supported.")));
    }
    Ok(RequestMatch {
        path: path(&stated.path)?,
        method: stated.method.clone(),
        headers: headers(&stated.headers)?,
        query: values(&stated.query_params, str::to_owned)?,
        conditions: Vec::new(),
    })
}

/// Reads a match of a GRPCRoute.
///
/// # Errors
///
/// The first value that is not supported.
pub fn grpc(stated: &GrpcMatch) -> Result<RequestMatch, Problem> {
    let path = match &stated.method {
        Some(method) => grpc_path(method)?,
        None => PathCondition::Prefix("/".to_owned()),
    };
    let headers = headers(&stated.headers)?;
    Ok(RequestMatch { path, method: None, headers, query: Vec::new(), conditions: Vec::new() })
}

fn path(stated: &PathMatch) -> Result<PathCondition, Problem> {
    let value = stated.value.as_str();
    match &*stated.kind {
        "Exact" => Ok(PathCondition::Exact(normal_path(value)?)),
        "PathPrefix" => {
            // A trailing slash is ignored (the API's rule).
            let path = normal_path(value)?;
            let short = path.strip_suffix('/').filter(|short| !short.is_empty());
            Ok(PathCondition::Prefix(short.unwrap_or(&path).to_owned()))
        }
        EXPRESSION => Ok(PathCondition::Regex(expression("path", value)?)),
        other => {
            Err(Problem::unsupported(format!("The type {other} of a path match is not supported.")))
        }
    }
}

/// Reads a path that a normalized request can have.
///
/// # Errors
///
/// Why no request has it.
pub fn normal_path(text: &str) -> Result<String, Problem> {
    let path = syntax::path("The path", text)?;
    let is_dots = |part: &str| part == "." || part == "..";
    let has_slash = |path: &str| path.contains("//") || path.to_ascii_lowercase().contains("%2f");
    if has_slash(&path) || path.split('/').any(is_dots) {
        return Err(Problem::unsupported(format!(
            "The path {path} is not normalized, so no request has it. Remove //, /./, /../ and %2F."
        )));
    }
    Ok(path)
}

/// The path of a gRPC call is `/service/method`.
fn grpc_path(stated: &MethodMatch) -> Result<PathCondition, Problem> {
    let service = stated.service.as_deref().filter(|text| !text.is_empty());
    let method = stated.method.as_deref().filter(|text| !text.is_empty());
    match (stated.kind.as_deref().unwrap_or("Exact"), service, method) {
        ("Exact", Some(service), Some(method)) => {
            Ok(PathCondition::Exact(format!("/{service}/{method}")))
        }
        ("Exact", Some(service), None) => Ok(PathCondition::Prefix(format!("/{service}"))),
        ("Exact", None, Some(method)) => {
            let escaped: String = method.chars().flat_map(escaped).collect();
            Ok(PathCondition::Regex(expression("method", &format!("/[^/]+/{escaped}"))?))
        }
        (EXPRESSION, service, method) => {
            // Each expression is checked alone, so that neither can close the other's parentheses.
            let any = "[^/]+";
            let (service, method) = (service.unwrap_or(any), method.unwrap_or(any));
            expression("method", service)?;
            expression("method", method)?;
            Ok(PathCondition::Regex(expression("method", &format!("/(?:{service})/(?:{method})"))?))
        }
        ("Exact", None, None) => Ok(PathCondition::Prefix("/".to_owned())),
        (other, _, _) => Err(Problem::unsupported(format!(
            "The type {other} of a method match is not supported."
        ))),
    }
}

/// Escapes what has a meaning in expressions.
fn escaped(letter: char) -> impl Iterator<Item = char> {
    let is_plain = letter.is_alphanumeric() || letter == '_';
    (!is_plain).then_some('\\').into_iter().chain([letter])
}

fn headers(stated: &[ValueMatch]) -> Result<Vec<ValueCondition>, Problem> {
    values(stated, str::to_ascii_lowercase)
}

/// Reads conditions on values. Of several with the same name, the first counts (the API's rule).
fn values(stated: &[ValueMatch], name: fn(&str) -> String) -> Result<Vec<ValueCondition>, Problem> {
    let mut read: Vec<ValueCondition> = Vec::new();
    for one in stated {
        let name = name(&one.name);
        if read.iter().any(|known| known.name == name) {
            continue;
        }
        let value = match one.kind.as_deref().unwrap_or("Exact") {
            "Exact" => ValueTest::Exact(one.value.clone()),
            EXPRESSION => ValueTest::Regex(expression(&name, &one.value)?),
            other => {
                let message = format!("The type {other} of the match for {name} is not supported.");
                return Err(Problem::unsupported(message));
            }
        };
        read.push(ValueCondition { name, value });
    }
    Ok(read)
}

/// Compiles an expression that must match a whole value. It must be one by itself, too.
fn expression(what: &str, text: &str) -> Result<Pattern, Problem> {
    let compiled = Pattern::parse(text).and_then(|_| Pattern::parse(&format!("^(?:{text})$")));
    compiled.map_err(|why| {
        Problem::unsupported(format!("The regular expression {text} for {what} is invalid: {why}."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normal() {
        let prefix = |text: &str| Some(PathCondition::Prefix(text.to_owned()));
        for (value, expected) in [
            ("/", prefix("/")),
            ("/foo", prefix("/foo")),
            ("/foo/", prefix("/foo")),
            ("/a%20b", prefix("/a%20b")),
            ("/..a", prefix("/..a")),
            ("foo", None),
            ("//", None),
            ("/a//b", None),
            ("/a/../b", None),
            ("/a/.", None),
            ("/a%2Fb", None),
            ("/a b", None),
            ("/a?b", None),
        ] {
            let stated = PathMatch { value: value.to_owned(), ..PathMatch::default() };
            assert_eq!(path(&stated).ok(), expected, "{value}");
        }
        let exact = PathMatch { kind: "Exact".to_owned(), value: "/foo/".to_owned() };
        assert_eq!(path(&exact).ok(), Some(PathCondition::Exact("/foo/".to_owned())));
    }

    #[test]
    fn of_values_with_one_name_the_first_counts() {
        let stated = |name: &str, value: &str| ValueMatch {
            name: name.to_owned(),
            value: value.to_owned(),
            ..ValueMatch::default()
        };
        let all = [stated("A", "1"), stated("a", "2")];
        let shown = |read: Result<Vec<ValueCondition>, Problem>| {
            read.unwrap().into_iter().map(|one| one.name).collect::<Vec<_>>()
        };
        assert_eq!(shown(headers(&all)), ["a"]);
        assert_eq!(shown(values(&all, str::to_owned)), ["A", "a"]);
    }

    #[test]
    fn calls_are_matched_by_path() {
        let prefix = |text: &str| PathCondition::Prefix(text.to_owned());
        let exact = |text: &str| PathCondition::Exact(text.to_owned());
        let regex =
            |text: &str| PathCondition::Regex(Pattern::parse(&format!("^(?:{text})$")).unwrap());
        for (text, expected) in [
            (r#"{"service": "a.B", "method": "C"}"#, Some(exact("/a.B/C"))),
            (r#"{"service": "a.B"}"#, Some(prefix("/a.B"))),
            (r#"{"method": "C-d"}"#, Some(regex(r"/[^/]+/C\-d"))),
            ("{}", Some(prefix("/"))),
            (
                r#"{"type": "RegularExpression", "service": "a|b"}"#,
                Some(regex("/(?:a|b)/(?:[^/]+)")),
            ),
            (r#"{"type": "RegularExpression", "service": "a)(", "method": "c"}"#, None),
            (r#"{"type": "RegularExpression", "service": "a(", "method": ")"}"#, None),
            (r#"{"type": "Other", "service": "a"}"#, None),
        ] {
            let method: MethodMatch = serde_json::from_str(text).unwrap();
            assert_eq!(grpc_path(&method).ok(), expected, "{text}");
        }
    }
}
