//! Bodies of the answers that Weir generates: HTML, problem details or plain text.

use std::fmt::Write as _;

use model::Cause;

use super::form::Form;
use super::reason::reason;
use crate::head::Bytes;

/// Maximum length of a request ID in a body. IDs have about 36 characters, but a trusted peer may
/// send as much as fits in a head.
const ID_MAX_BYTES: usize = 128;

// `$name` is replaced by one of the facts.
const HTML: &str = include_str!("page.html");
const TEXT: &str = "\
$status $reason
$message

cause: $cause
request: $id
";
const JSON: &str = "{\"status\":$status,\"cause\":\"$cause\",\"fault\":\"$fault\",\
    \"message\":\"$message\",\"request_id\":\"$id\"}\n";
/// `type` is omitted, which means "about:blank": the title is that of the status.
const PROBLEM: &str = "{\"title\":\"$reason\",\"status\":$status,\"detail\":\"$message\",\
    \"cause\":\"$cause\",\"fault\":\"$fault\",\"request_id\":\"$id\"}\n";

/// The values that a body shows.
pub(super) struct Facts<'a> {
    pub(super) status: u16,
    pub(super) cause: Cause,
    /// Detail beyond the cause, or empty.
    pub(super) detail: &'static str,
    /// May contain any bytes.
    pub(super) request_id: &'a [u8],
}

/// Appends the body.
pub(super) fn write(form: Form, facts: &Facts<'_>, out: &mut Vec<u8>) {
    let (template, escape) = match form {
        Form::Text => (TEXT, Escape::None),
        Form::Html => (HTML, Escape::Html),
        Form::Json => (JSON, Escape::Json),
        Form::Problem => (PROBLEM, Escape::Json),
    };
    let mut pieces = template.split('$');
    out.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        let end = piece.bytes().take_while(u8::is_ascii_lowercase).count();
        let (name, rest) = piece.split_at(end);
        // Names, reasons and summaries are constants that need no escaping; a test checks this.
        match name {
            "status" => _ = write!(Bytes(out), "{}", facts.status),
            "reason" => out.extend_from_slice(reason(facts.status).as_bytes()),
            "cause" => out.extend_from_slice(facts.cause.name().as_bytes()),
            "fault" => out.extend_from_slice(facts.cause.fault().as_str().as_bytes()),
            "message" => write_message(facts, escape, out),
            "id" => write_escaped(shown(facts.request_id), escape, out),
            _ => debug_assert!(false, "no such fact: {name}"),
        }
        out.extend_from_slice(rest.as_bytes());
    }
}

/// Appends a request ID in a form that is valid in a header field.
pub(super) fn write_id(id: &[u8], out: &mut Vec<u8>) {
    write_escaped(shown(id), Escape::None, out);
}

fn shown(id: &[u8]) -> &[u8] {
    &id[..id.len().min(ID_MAX_BYTES)]
}

/// Appends one sentence, followed by a colon and the detail if there is one.
fn write_message(facts: &Facts<'_>, escape: Escape, out: &mut Vec<u8>) {
    let summary = facts.cause.summary().trim_end_matches('.');
    out.extend_from_slice(summary.as_bytes());
    if !facts.detail.is_empty() {
        out.extend_from_slice(b": ");
        write_escaped(facts.detail.as_bytes(), escape, out);
    }
    out.push(b'.');
}

#[derive(Clone, Copy)]
enum Escape {
    None,
    Html,
    Json,
}

/// Appends `text`, replacing everything but visible ASCII with `?` in every format: a client must
/// not control how a terminal, a log viewer or a parser interprets such bytes.
fn write_escaped(text: &[u8], escape: Escape, out: &mut Vec<u8>) {
    for &byte in text {
        match (escape, byte) {
            (_, ..b' ' | 0x7f..) => out.push(b'?'),
            (Escape::Html, b'<' | b'>' | b'&' | b'"' | b'\'') => {
                let _ = write!(Bytes(out), "&#{byte};");
            }
            (Escape::Json, b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &[u8], escape: Escape) -> String {
        let mut out = Vec::new();
        write_escaped(text, escape, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn hostile_bytes_become_harmless() {
        let hostile = b"</dd><script>a='\"'&\\\r\n\0\x1b[31m\x7f\xc3\xa9";
        assert_eq!(
            escaped(hostile, Escape::Html),
            "&#60;/dd&#62;&#60;script&#62;a=&#39;&#34;&#39;&#38;\\????[31m???"
        );
        assert_eq!(escaped(hostile, Escape::Json), "</dd><script>a='\\\"'&\\\\????[31m???");
        assert_eq!(escaped(hostile, Escape::None), "</dd><script>a='\"'&\\????[31m???");
    }

    #[test]
    fn every_fact_of_a_template_is_known_and_our_own_words_need_no_escaping() {
        for template in [HTML, TEXT, JSON, PROBLEM] {
            for piece in template.split('$').skip(1) {
                let name: String = piece.chars().take_while(char::is_ascii_lowercase).collect();
                let known = ["status", "reason", "cause", "fault", "message", "id"];
                assert!(known.contains(&name.as_str()), "{name}");
            }
        }
        let plain = |text: &str| {
            let kept = [Escape::None, Escape::Html, Escape::Json];
            kept.into_iter().all(|escape| escaped(text.as_bytes(), escape) == text)
        };
        for &cause in Cause::ALL {
            assert!(plain(cause.name()) && plain(cause.fault().as_str()) && plain(cause.summary()));
        }
        assert!((100..1000).all(|status| plain(reason(status))));
    }
}
