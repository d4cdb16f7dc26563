//! Reads annotations of ingress-nginx one by one, and keeps what is wrong with them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::objects::Meta;
use crate::resolve::status::Problem;

/// What the names of these annotations begin with.
pub const PREFIX: &str = "nginx.ingress.kubernetes.io/";

/// A longer value is not read.
const VALUE_MAX_BYTES: usize = 16 * 1024;
/// At most this much of a value is shown.
const SHOWN_MAX_CHARS: usize = 80;
/// At most this many problems are kept for one Ingress.
const PROBLEMS_MAX: usize = 16;

/// The annotations of an Ingress that have not been read yet.
#[derive(Debug)]
pub struct Annotations<'a> {
    unread: BTreeMap<&'a str, &'a str>,
    problems: Vec<Problem>,
    /// How many more there were.
    left_out: usize,
    is_refused: bool,
}

impl<'a> Annotations<'a> {
    /// Begins with all annotations of an object.
    pub fn new(metadata: &'a Meta) -> Annotations<'a> {
        let all = metadata.annotations.iter();
        let own = all.filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?, value.trim())));
        Annotations { unread: own.collect(), problems: Vec::new(), left_out: 0, is_refused: false }
    }

    /// Returns the value of an annotation, if it is not empty.
    pub fn text(&mut self, name: &str) -> Option<&'a str> {
        let value = self.unread.remove(name).filter(|value| !value.is_empty())?;
        if value.len() > VALUE_MAX_BYTES {
            let why = format!("has more than {VALUE_MAX_BYTES} bytes");
            self.invalid(name, &why);
            return None;
        }
        Some(value)
    }

    /// Returns whether an annotation is there and has not been read.
    pub fn has(&self, name: &str) -> bool {
        self.unread.get(name).is_some_and(|value| !value.is_empty())
    }

    /// Returns the value of an annotation that is true or false, in the forms that ingress-nginx accepts.
    pub fn flag(&mut self, name: &str) -> Option<bool> {
        let text = self.text(name)?;
        let flag = match text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
            _ => None,
        };
        if flag.is_none() {
            self.invalid(name, &format!("is {}, not true or false", shown(text)));
        }
        flag
    }

    /// Returns whether an annotation is true.
    pub fn is_on(&mut self, name: &str) -> bool {
        self.flag(name) == Some(true)
    }

    /// Returns the value of an annotation that is a number.
    pub fn number(&mut self, name: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let text = self.text(name)?;
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| is_number && range.contains(number));
        if number.is_none() {
            let (first, last) = (range.start(), range.end());
            self.invalid(name, &format!("is {}, not a number from {first} to {last}", shown(text)));
        }
        number
    }

    /// Returns the value of an annotation that is a time in seconds.
    pub fn seconds(&mut self, name: &str) -> Option<Duration> {
        const SECONDS_MAX: u32 = 7 * 86_400;
        let seconds = self.number(name, 1..=SECONDS_MAX)?;
        Some(Duration::from_secs(u64::from(seconds)))
    }

    /// Records that the value of an annotation cannot be used. `why` follows the name. If the annotation protects the
    /// backends, the rules of the Ingress are refused.
    pub fn invalid(&mut self, name: &str, why: &str) {
        self.problem("InvalidAnnotation", name, why);
    }

    /// Records that Weir does not support an annotation or its value. `why` follows the name. If the annotation protects
    /// the backends, the rules of the Ingress are refused.
    pub fn unsupported(&mut self, name: &str, why: &str) {
        self.problem("UnsupportedAnnotation", name, why);
    }

    fn problem(&mut self, reason: &'static str, name: &str, why: &str) {
        let why = why.trim_end_matches('.');
        if !is_protective(name) {
            let message = format!("The annotation {PREFIX}{name} {why}. It has no effect.");
            self.add(Problem::new(reason, message));
            return;
        }
        self.refuse(name, &format!("{why}. It protects the backends"));
    }

    /// Records that the value of an annotation cannot be used, and that the rules of the Ingress are refused. `why`
    /// follows the name.
    pub fn refuse(&mut self, name: &str, why: &str) {
        let why = why.trim_end_matches('.');
        let message = format!(
            "The annotation {PREFIX}{name} {why}. Requests for this Ingress receive the status 503 \
             until the annotation is corrected or removed."
        );
        self.refusal(message);
    }

    /// Records that the backends of a canary receive no requests because of an annotation. `why` follows the name.
    pub fn refuse_canary(&mut self, name: &str, why: &str) {
        let message = format!(
            "The annotation {PREFIX}{name} {why}, so the canary receives no requests. Remove the \
             annotation from it."
        );
        self.refusal(message);
    }

    fn refusal(&mut self, message: String) {
        self.is_refused = true;
        // The reason for a refusal must not be among those that are left out.
        self.problems.insert(0, Problem::new("Refused", message));
        self.limit();
    }

    /// Records that a part of the value of an annotation has no effect. `why` follows the name.
    pub fn remark(&mut self, name: &str, why: &str) {
        let message = format!("The annotation {PREFIX}{name} {why}.");
        self.add(Problem::new("InvalidAnnotation", message));
    }

    /// Records a problem.
    pub fn add(&mut self, problem: Problem) {
        self.problems.push(problem);
        self.limit();
    }

    fn limit(&mut self) {
        while self.problems.len() > PROBLEMS_MAX {
            self.problems.pop();
            self.left_out += 1;
        }
    }

    /// Records that an annotation is read and has no effect, and what to do instead.
    pub fn note(&mut self, name: &str, advice: &str) {
        let message = format!("The annotation {PREFIX}{name} has no effect. {advice}");
        self.add(Problem::new("UnsupportedAnnotation", message));
    }

    /// Returns the names of those that have not been read, without empty ones.
    pub fn take_unread(&mut self) -> Vec<(&'a str, &'a str)> {
        let unread = std::mem::take(&mut self.unread);
        unread.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }

    /// Returns whether the rules of the Ingress are refused.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Returns all problems.
    pub fn into_problems(mut self) -> Vec<Problem> {
        if self.left_out > 0 {
            let message = format!("There are {} more problems with this Ingress.", self.left_out);
            self.problems.push(Problem::new("MoreProblems", message));
        }
        self.problems
    }
}

/// Returns whether an annotation keeps clients from the backends.
pub fn is_protective(name: &str) -> bool {
    name.starts_with("auth-")
        || matches!(
            name,
            "whitelist-source-range" | "allowlist-source-range" | "denylist-source-range"
        )
}

/// Returns a value for a message: quoted, escaped and cut.
pub fn shown(text: &str) -> String {
    let mut letters = text.chars();
    let start: String = letters.by_ref().take(SHOWN_MAX_CHARS).collect();
    let more = if letters.next().is_some() { "..." } else { "" };
    format!("{start:?}{more}")
}

/// Returns the parts of a list that is separated by commas.
pub fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(pairs: &[(&str, &str)]) -> Meta {
        let pairs =
            pairs.iter().map(|(name, value)| (format!("{PREFIX}{name}"), (*value).to_owned()));
        Meta { annotations: pairs.collect(), ..Meta::default() }
    }

    #[test]
    fn values_are_read_as_in_go() {
        for (text, expected) in [
            ("true", Some(true)),
            ("True", Some(true)),
            ("1", Some(true)),
            ("f", Some(false)),
            ("yes", None),
            ("on", None),
            ("", None),
        ] {
            let metadata = metadata(&[("enable-cors", text)]);
            assert_eq!(Annotations::new(&metadata).flag("enable-cors"), expected, "{text}");
        }
        for (text, expected) in [
            ("5", Some(5)),
            ("0", None),
            ("+5", None),
            ("-1", None),
            ("4294967296", None),
            ("5s", None),
        ] {
            let metadata = metadata(&[("limit-rps", text)]);
            assert_eq!(Annotations::new(&metadata).number("limit-rps", 1..=10), expected, "{text}");
        }
    }

    #[test]
    fn problems_are_bounded_and_a_refusal_is_first() {
        let long = "x".repeat(VALUE_MAX_BYTES + 1);
        let metadata = metadata(&[("auth-url", &long), ("app-root", &long)]);
        let mut annotations = Annotations::new(&metadata);
        for _ in 0..100 {
            annotations.unsupported("app-root", "is not supported");
        }
        assert!(!annotations.is_refused());
        assert_eq!(annotations.text("app-root"), None);
        assert_eq!(annotations.text("auth-url"), None);
        assert!(annotations.is_refused());
        let problems = annotations.into_problems();
        assert_eq!(problems.len(), PROBLEMS_MAX + 1);
        assert_eq!(problems[0].reason, "Refused");
        assert!(shown(&"\r\n".repeat(1000)).len() < 400);
    }
}
