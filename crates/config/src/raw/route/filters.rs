//! Reads the filters of a route.

use model::{Compression, ContentCoding, MediaRange, RateKey, RateKeyWord, RateLimit};
use toml::de::DeValue;

use crate::defaults;
use crate::diagnostic::{Diagnostic, Wrong, either, quote};
use crate::raw::http;
use crate::raw::table::{Table, choose, is_empty_list};

pub(super) fn compress(table: &mut Table<'_>) -> Option<Compression> {
    let on = || Compression {
        codings: read_all(defaults::COMPRESS_CODINGS, |word| word.parse().ok()),
        types: read_all(defaults::COMPRESS_TYPES, MediaRange::parse),
        length_min_bytes: defaults::COMPRESS_LENGTH_MIN,
    };
    match table.peek("compress") {
        None | Some(DeValue::Boolean(false)) => return None,
        Some(DeValue::Boolean(true)) => return Some(on()),
        Some(_) => {}
    }
    let mut table = table.table("compress")?;
    let codings = table.texts("codings", |text| choose(text, ContentCoding::WORDS));
    let types = table.texts("types", |text| {
        MediaRange::parse(text).ok_or_else(|| {
            Wrong::new("no media type").help("write \"text/html\", \"text/*\" or \"*/*+json\"")
        })
    });
    for (key, is_empty) in [
        ("codings", codings.as_ref().is_some_and(Vec::is_empty)),
        ("types", types.as_ref().is_some_and(Vec::is_empty)),
    ] {
        if is_empty && is_empty_list(table.peek(key)) {
            table.problems.report(
                Diagnostic::error("nothing would be compressed", table.span_of(key), "empty")
                    .help(format!("leave `{key}` out for the default, or write compress = false")),
            );
        }
    }
    let length_min_bytes = table.size("length_min").value;
    table.finish();
    let on = on();
    Some(Compression {
        codings: codings.map_or(on.codings, |codings| {
            codings.into_iter().filter_map(|at| at.value.parse().ok()).collect()
        }),
        types: types.map_or(on.types, |types| types.into_iter().map(|at| at.value).collect()),
        length_min_bytes,
    })
}

fn read_all<T>(words: &[&str], read: impl Fn(&str) -> Option<T>) -> Vec<T> {
    words.iter().filter_map(|word| read(word)).collect()
}

pub(super) fn rate_limit(mut table: Table<'_>) -> Option<RateLimit> {
    let requests = table.integer_if::<u32>("requests");
    let per = table.duration("per").value;
    let burst = table.integer_if::<u32>("burst");
    let wait_max = table.duration("wait_max").value;
    let by = table.text("by", |text| {
        let (word, name) = key_part(text);
        match (word.parse(), name) {
            (Ok(RateKeyWord::Client), None) => Ok(RateKey::Client),
            (Ok(RateKeyWord::Field), Some(field)) => http::field_name(field).map(RateKey::Field),
            (Ok(RateKeyWord::Client), Some(_)) | (Ok(RateKeyWord::Field), None) | (Err(_), _) => {
                Err(unknown_key_part(text, &["client", "header:NAME"]))
            }
        }
    });
    table.finish();
    let requests = requests?.value;
    Some(RateLimit {
        by: by.map_or(RateKey::Client, |at| at.value),
        requests,
        per,
        burst: burst.map_or(requests, |at| at.value),
        wait_max,
    })
}

/// Splits `header:NAME` into its word and the name; `client` has no name.
pub(in crate::raw) fn key_part(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        Some((word, name)) => (word, Some(name.trim())),
        None => (text, None),
    }
}

/// Reports a part of a request that is not one of the supported ones.
pub(in crate::raw) fn unknown_key_part(text: &str, known: &[&str]) -> Wrong {
    let wrong = Wrong::new("no part of a request");
    match text.to_ascii_lowercase().as_str() {
        "ip" | "client-ip" | "client_ip" | "source" | "remote_addr" | "address" | "clients" => {
            wrong.help("did you mean \"client\"?")
        }
        _ => {
            let meant = if http::field_name(text).is_ok() { text } else { "NAME" };
            let shown: Vec<_> = known.iter().map(|k| quote(&k.replace("NAME", meant))).collect();
            let shown: Vec<_> = shown.iter().map(String::as_str).collect();
            wrong.help(format!("write {}", either(&shown)))
        }
    }
}
