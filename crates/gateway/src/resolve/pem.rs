//! A cheap check of PEM text: its blocks, not what they contain. The TLS library reads the contents later.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Checks for at least one certificate.
///
/// # Errors
///
/// The rest of a sentence that begins with the name of the text.
pub fn certificates(text: &[u8]) -> Result<(), String> {
    blocks(text, "CERTIFICATE block", |label| label == "CERTIFICATE")
}

/// Checks for a private key that is not encrypted.
///
/// # Errors
///
/// The rest of a sentence that begins with the name of the text.
pub fn private_key(text: &[u8]) -> Result<(), String> {
    let is_key =
        |label: &str| matches!(label, "PRIVATE KEY" | "RSA PRIVATE KEY" | "EC PRIVATE KEY");
    blocks(text, "unencrypted PRIVATE KEY block", is_key)
}

/// Checks that all blocks are complete and in base64, and that one of them has the label.
fn blocks(text: &[u8], wanted: &str, is_wanted: impl Fn(&str) -> bool) -> Result<(), String> {
    let Ok(mut rest) = std::str::from_utf8(text) else {
        return Err("is not text; it must be in PEM format".to_owned());
    };
    let mut is_found = false;
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        // The label becomes a part of messages: it must not be the rest of a Secret.
        let line = after.split_once("-----").filter(|(label, _)| is_label(label));
        let Some((label, after)) = line else {
            return Err("has an invalid BEGIN line".to_owned());
        };
        let Some((body, after)) = after.split_once(&format!("-----END {label}-----")) else {
            return Err(format!("has a block {label} without an END line"));
        };
        let body: String = body.split_whitespace().collect();
        if body.is_empty() || STANDARD.decode(&body).is_err() {
            return Err(format!("has a block {label} that is not valid base64"));
        }
        is_found |= is_wanted(label);
        rest = after;
    }
    if is_found { Ok(()) } else { Err(format!("has no {wanted} in PEM format")) }
}

fn is_label(text: &str) -> bool {
    text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_checked() {
        let block = |label: &str, body: &str| {
            format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
        };
        let good = block("CERTIFICATE", "aGVsbG8=");
        for (text, is_certificate, is_key) in [
            (String::new(), false, false),
            ("Hello world".to_owned(), false, false),
            (good.clone(), true, false),
            (format!("# a comment\n{good}{good}"), true, false),
            (block("CERTIFICATE", "aGVs\nbG8="), true, false),
            (block("CERTIFICATE", "aGVsbG8"), false, false),
            (block("CERTIFICATE", ""), false, false),
            (format!("{good}-----BEGIN CERTIFICATE-----\naGVs"), false, false),
            (format!("{good}{}", block("CERTIFICATE", "?")), false, false),
            (block("PRIVATE KEY", "aGVsbG8="), false, true),
            (block("EC PARAMETERS", "aGVs") + &block("EC PRIVATE KEY", "aGVs"), false, true),
            (block("RSA PRIVATE KEY", "aGVs"), false, true),
            (block("ENCRYPTED PRIVATE KEY", "aGVs"), false, false),
        ] {
            assert_eq!(certificates(text.as_bytes()).is_ok(), is_certificate, "{text}");
            assert_eq!(private_key(text.as_bytes()).is_ok(), is_key, "{text}");
        }
        assert!(certificates(&[0xff]).is_err());
        let secret = format!("-----BEGIN {}-----", "secret ".repeat(1000));
        assert_eq!(private_key(secret.as_bytes()), Err("has an invalid BEGIN line".to_owned()));
    }
}
