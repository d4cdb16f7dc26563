//! The values that a call of a webhook or command passes on.

use std::net::SocketAddr;

use scaling::plan::Call;
use serde_json::{Value, json};

/// A call, with what describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) service: String,
    pub(super) call: Call<SocketAddr>,
    /// Why that number, for programs and for people.
    pub(super) reason: &'static str,
    pub(super) why: String,
}

impl Message {
    /// Returns the body of a request: the configured one, or an object with all values.
    pub(super) fn body(&self, template: Option<&str>) -> String {
        match template {
            Some(template) => self.filled(template, |text| {
                let quoted = Value::from(text).to_string();
                let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                inner.unwrap_or(&quoted).to_owned()
            }),
            None => self.object().to_string(),
        }
    }

    /// Returns an argument of a command.
    pub(super) fn argument(&self, template: &str) -> String {
        self.filled(template, str::to_owned)
    }

    /// Returns environment variables with all values.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let mut variables: Vec<(String, String)> = self
            .placeholders()
            .into_iter()
            .map(|(name, value)| (format!("WEIR_{}", name.to_ascii_uppercase()), value))
            .collect();
        variables.push(("WEIR_WHY".to_owned(), self.why.clone()));
        variables
    }

    fn object(&self) -> Value {
        let Message { service, call, reason, why } = self;
        json!({
            "service": service,
            "servers": call.servers,
            "before": call.before,
            "change": call.change.word(),
            "reason": reason,
            "why": why,
            "remove": call.remove.iter().map(SocketAddr::to_string).collect::<Vec<_>>(),
        })
    }

    fn placeholders(&self) -> [(&'static str, String); 6] {
        let Message { service, call, reason, .. } = self;
        let remove: Vec<String> = call.remove.iter().map(SocketAddr::to_string).collect();
        [
            ("service", service.clone()),
            ("servers", call.servers.to_string()),
            ("before", call.before.to_string()),
            ("change", call.change.word().to_owned()),
            ("reason", (*reason).to_owned()),
            ("remove", remove.join(" ")),
        ]
    }

    /// Replaces the placeholders of a text. What replaces one is not looked at again.
    fn filled(&self, template: &str, written: impl Fn(&str) -> String) -> String {
        let values = self.placeholders();
        let (mut filled, mut rest) = (String::with_capacity(template.len()), template);
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let found = values.iter().find_map(|(name, value)| {
                Some((value, after.strip_prefix(name)?.strip_prefix('}')?))
            });
            if let Some((value, after)) = found {
                filled.push_str(&written(value));
                rest = after;
            } else {
                filled.push('{');
                rest = after;
            }
        }
        filled + rest
    }
}

#[cfg(test)]
mod tests {
    use scaling::plan::Change;

    use super::*;

    fn message() -> Message {
        Message {
            service: "a\"b {servers}".to_owned(),
            call: Call {
                change: Change::In,
                servers: 3,
                before: 3,
                remove: vec!["10.0.0.1:80".parse().unwrap(), "[::1]:80".parse().unwrap()],
            },
            reason: "less_load",
            why: "why".to_owned(),
        }
    }

    #[test]
    fn placeholders_are_replaced_once_and_other_braces_stay() {
        let message = message();
        for (template, expected) in [
            ("", ""),
            ("{servers}", "3"),
            ("{{servers}} {change}", "{3} in"),
            ("{\"Count\": {servers}, \"x\": {}}", "{\"Count\": 3, \"x\": {}}"),
            ("{service", "{service"),
            ("{before}{reason}{", "3less_load{"),
            ("{remove}", "10.0.0.1:80 [::1]:80"),
        ] {
            assert_eq!(message.argument(template), expected);
        }
        assert_eq!(message.argument("{service}"), "a\"b {servers}");
        assert_eq!(message.body(Some("\"{service}\"")), "\"a\\\"b {servers}\"");
    }

    #[test]
    fn without_a_body_there_is_an_object() {
        let body: Value = serde_json::from_str(&message().body(None)).unwrap();
        assert_eq!(
            body,
            json!({
                "service": "a\"b {servers}", "servers": 3, "before": 3, "change": "in",
                "reason": "less_load", "why": "why", "remove": ["10.0.0.1:80", "[::1]:80"],
            })
        );
        let variables = message().variables();
        assert!(variables.contains(&("WEIR_SERVERS".to_owned(), "3".to_owned())));
        assert!(variables.contains(&("WEIR_WHY".to_owned(), "why".to_owned())));
    }
}
