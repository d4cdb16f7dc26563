//! Host names of listeners and routes, and what they have in common.

use model::HostPattern;

/// Reads a host name of the Gateway API: a DNS name, or `*.` and a DNS name.
///
/// # Errors
///
/// Why it is none.
pub fn host(text: &str) -> Result<HostPattern, &'static str> {
    let (name, is_wildcard) = match text.strip_prefix("*.") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let is_label = |label: &str| {
        let is_inner =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.len() > 253 || !name.split('.').all(is_label) {
        return Err("is not a DNS name in lower case, alone or after `*.`");
    }
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    if name.rsplit('.').next().is_some_and(is_number) {
        return Err("is an IP address; a host name is a DNS name");
    }
    Ok(if is_wildcard {
        HostPattern::Wildcard(name.to_owned())
    } else {
        HostPattern::Exact(name.to_owned())
    })
}

/// Returns the hosts that both a listener and a route are for; `None` among them: any host. Empty: they have none in
/// common.
///
/// Without host names, a route is for those of the listener, and a listener for those of the route.
pub fn in_common(
    listener: Option<&HostPattern>,
    route: &[HostPattern],
) -> Vec<Option<HostPattern>> {
    let Some(listener) = listener else {
        return if route.is_empty() {
            vec![None]
        } else {
            route.iter().cloned().map(Some).collect()
        };
    };
    if route.is_empty() {
        return vec![Some(listener.clone())];
    }
    let mut common: Vec<Option<HostPattern>> = Vec::new();
    for host in route {
        let both = if listener.covers_all_of(host) {
            host
        } else if host.covers_all_of(listener) {
            listener
        } else {
            continue;
        };
        let both = Some(both.clone());
        if !common.contains(&both) {
            common.push(both);
        }
    }
    common
}

/// Returns the patterns that cover all of `host`, itself excepted; `None` among them and as `host`: any host.
pub fn wider(host: Option<&HostPattern>) -> Vec<Option<HostPattern>> {
    let Some(host) = host else { return Vec::new() };
    let name = match host {
        HostPattern::Exact(name) | HostPattern::Wildcard(name) => name.as_str(),
    };
    let mut found = vec![None];
    let mut rest = name;
    while let Some((_, parent)) = rest.split_once('.') {
        found.push(Some(HostPattern::Wildcard(parent.to_owned())));
        rest = parent;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_the_api_defines_them() {
        for (text, expected) in [
            ("a.example.com", Some(HostPattern::Exact("a.example.com".into()))),
            ("*.example.com", Some(HostPattern::Wildcard("example.com".into()))),
            ("*.com", Some(HostPattern::Wildcard("com".into()))),
            ("localhost", Some(HostPattern::Exact("localhost".into()))),
            ("", None),
            ("*", None),
            ("*.", None),
            ("A.example.com", None),
            ("a..example.com", None),
            ("a.example.com.", None),
            ("-a.example.com", None),
            ("a.*.example.com", None),
            ("a_b.example.com", None),
            ("10.0.0.1", None),
            ("a.example.com:80", None),
            ("a.example.com\n", None),
        ] {
            assert_eq!(host(text).ok(), expected, "{text}");
        }
        assert!(host(&"a.".repeat(130)).is_err());
    }

    #[test]
    fn the_more_specific_of_two_hosts_is_in_common() {
        let table = [
            // listener, hosts of the route, in common
            ("", "", "any"),
            ("", "a.example.com *.b.example.com", "a.example.com *.b.example.com"),
            ("a.example.com", "", "a.example.com"),
            ("a.example.com", "a.example.com b.example.com", "a.example.com"),
            ("a.example.com", "*.example.com", "a.example.com"),
            ("a.example.com", "*.com *.example.com", "a.example.com"),
            (
                "*.example.com",
                "a.example.com example.com x.a.example.com",
                "a.example.com x.a.example.com",
            ),
            ("*.example.com", "*.com", "*.example.com"),
            ("*.example.com", "*.a.example.com", "*.a.example.com"),
            ("*.example.com", "*.example.org example.com", ""),
        ];
        for (listener, route, expected) in table {
            let listener = (!listener.is_empty()).then(|| host(listener).unwrap());
            let route: Vec<HostPattern> =
                route.split_whitespace().map(|one| host(one).unwrap()).collect();
            let common = in_common(listener.as_ref(), &route);
            let shown: Vec<String> = common
                .iter()
                .map(|one| one.as_ref().map_or_else(|| "any".to_owned(), ToString::to_string))
                .collect();
            assert_eq!(shown.join(" "), expected, "{listener:?} {route:?}");
        }
    }
}
