//! What an answer says to whoever reads it: a person at a browser, a program, a terminal.

use std::fmt::Write as _;

use model::Cause;

use super::accept::Form;
use super::reason::reason;
use crate::head::Bytes;

/// The most of a request id that is shown: ids have some 36 characters, and a trusted peer may
/// send whatever fits in a head.
const ID_MAX_BYTES: usize = 128;

// `$name` stands for one of the facts.
const HTML: &str = include_str!("page.html");
const TEXT: &str = "\
$status $reason
$message

cause: $cause
request: $id
";
const JSON: &str = "{\"status\":$status,\"cause\":\"$cause\",\"fault\":\"$fault\",\
    \"message\":\"$message\",\"request_id\":\"$id\"}\n";
/// Without `type`, which is "about:blank" then: the title is the status's own.
const PROBLEM: &str = "{\"title\":\"$reason\",\"status\":$status,\"detail\":\"$message\",\
    \"cause\":\"$cause\",\"fault\":\"$fault\",\"request_id\":\"$id\"}\n";

/// What there is to say.
pub(super) struct Facts<'a> {
    pub(super) status: u16,
    pub(super) cause: Cause,
    /// What exactly, or empty.
    pub(super) detail: &'static str,
    /// Any bytes.
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
        // Names, reasons and summaries are our own and need no escaping, which a test proves.
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

/// Appends a request id as it may stand in a field.
pub(super) fn write_id(id: &[u8], out: &mut Vec<u8>) {
    write_escaped(shown(id), Escape::None, out);
}

fn shown(id: &[u8]) -> &[u8] {
    &id[..id.len().min(ID_MAX_BYTES)]
}

/// One sentence, the detail behind its colon.
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

/// Appends `text`; what is not visible ASCII becomes `?`, whatever the form: who may send such
/// bytes may not choose how a terminal, a log viewer or a parser takes them.
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
