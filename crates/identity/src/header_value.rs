//! Whether an identity may be passed to a server as the value of a header field.
//!
//! A name or claim that is unfit denies the request. It is not changed into a fit one: two users
//! could become the same user, or a user another one.

use std::fmt;

/// The longest value that is passed on.
pub const VALUE_MAX_BYTES: usize = 2048;

/// Why a value may not be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is empty, which servers read like an absent one.
    Empty,
    /// It is longer than [`VALUE_MAX_BYTES`].
    TooLong,
    /// It has CR, LF, NUL or another control character, or a Unicode line or paragraph separator.
    ControlCharacter,
    /// It begins or ends with white space, which servers strip.
    OuterSpace,
    /// It is a claim that is empty, or neither a text, an integer, a truth value nor a list of these.
    NoText,
    /// It is an element of a list and has a comma, which separates elements.
    Comma,
}

impl Unfit {
    /// Returns a word for logs and metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Unfit::Empty => "value_empty",
            Unfit::TooLong => "value_too_long",
            Unfit::ControlCharacter => "value_control_character",
            Unfit::OuterSpace => "value_outer_space",
            Unfit::NoText => "value_no_text",
            Unfit::Comma => "value_comma",
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unfit::Empty => "the value is empty",
            Unfit::TooLong => "the value is too long for a header field",
            Unfit::ControlCharacter => "the value has a control character",
            Unfit::OuterSpace => "the value begins or ends with white space",
            Unfit::NoText => "the claim is empty or has no text",
            Unfit::Comma => "an element of the list has a comma",
        })
    }
}

/// Returns `value` if it may be the value of a header field.
///
/// Text outside ASCII is passed on as UTF-8, which RFC 9110 section 5.5 allows (obs-text) and other
/// gateways do. A percent-encoded form would be ambiguous, since `%` itself is common in names. A
/// server that reads bytes as Latin-1 sees other characters, but never those of another user: even
/// if it strips a last byte that is white space there, what is left is not valid UTF-8.
///
/// # Errors
///
/// See [`Unfit`]; the request must be denied.
pub fn check(value: &str) -> Result<&str, Unfit> {
    if value.is_empty() {
        return Err(Unfit::Empty);
    }
    if value.len() > VALUE_MAX_BYTES {
        return Err(Unfit::TooLong);
    }
    if value.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return Err(Unfit::ControlCharacter);
    }
    if value.trim() != value {
        return Err(Unfit::OuterSpace);
    }
    Ok(value)
}

/// Joins the elements of a list with commas.
///
/// # Errors
///
/// An element is unfit by itself or has a comma, or all together are too long.
pub fn join<'a>(elements: impl IntoIterator<Item = &'a str>) -> Result<String, Unfit> {
    let mut value = String::new();
    for element in elements {
        if check(element)?.contains(',') {
            return Err(Unfit::Comma);
        }
        if !value.is_empty() {
            value.push(',');
        }
        value.push_str(element);
        if value.len() > VALUE_MAX_BYTES {
            return Err(Unfit::TooLong);
        }
    }
    if value.is_empty() { Err(Unfit::Empty) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_people_pass_unchanged() {
        for value in
            ["anna", "Anna Müller", "a,b;c=\"d\"%41", "李雷", "anna@example.org", "-", "नमस्ते"]
        {
            assert_eq!(check(value), Ok(value));
        }
    }

    #[test]
    fn whatever_could_end_the_field_is_refused() {
        for value in [
            "a\r\nX-Admin: 1",
            "a\nb",
            "a\rb",
            "a\0b",
            "a\tb",
            "a\x1bb",
            "a\x7fb",
            "a\u{85}b",
            "a\u{2028}b",
        ] {
            assert_eq!(check(value), Err(Unfit::ControlCharacter), "{value:?}");
            assert_eq!(join(["x", value]), Err(Unfit::ControlCharacter), "{value:?}");
        }
        for value in [" a", "a ", "\u{a0}a", "a\u{2003}"] {
            assert_eq!(check(value), Err(Unfit::OuterSpace), "{value:?}");
        }
    }

    #[test]
    fn values_are_bounded() {
        assert_eq!(check(""), Err(Unfit::Empty));
        assert!(check(&"x".repeat(VALUE_MAX_BYTES)).is_ok());
        assert_eq!(check(&"x".repeat(VALUE_MAX_BYTES + 1)), Err(Unfit::TooLong));
        assert_eq!(join(std::iter::repeat_n("xxx", 1000)), Err(Unfit::TooLong));
    }

    #[test]
    fn elements_of_a_list_stay_apart() {
        assert_eq!(join(["a", "b c"]).unwrap(), "a,b c");
        assert_eq!(join(["users,admins"]), Err(Unfit::Comma));
        assert_eq!(join(["a", ""]), Err(Unfit::Empty));
        assert_eq!(join([]), Err(Unfit::Empty));
    }
}
