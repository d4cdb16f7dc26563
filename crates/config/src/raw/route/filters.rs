//! Reads the filters of a route.

use model::units::show_duration;
use model::{Compression, ContentCoding, LimitScope, MediaRange, RateKey, RateKeyWord, RateLimit};
use toml::de::DeValue;

use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Wrong, either, quote};
use crate::raw::table::{Table, choose, is_empty_list};
use crate::raw::{RawMirror, RawRateLimit, http, name};

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

/// The most mirrors of one route.
const MIRRORS_MAX: usize = 8;

pub(super) fn mirrors(table: &mut Table<'_>) -> Vec<RawMirror> {
    let tables = table.tables("mirror");
    if tables.len() > MIRRORS_MAX {
        let title = format!("a route has at most {MIRRORS_MAX} mirrors");
        let these = format!("{} mirrors", tables.len());
        table.problems.report(Diagnostic::error(title, table.span_of("mirror"), these));
    }
    if is_empty_list(table.peek("mirror")) {
        table.problems.report(
            Diagnostic::error("nothing would be copied", table.span_of("mirror"), "empty")
                .help("leave `mirror` out"),
        );
    }
    tables.into_iter().filter_map(mirror).collect()
}

fn mirror(mut table: Table<'_>) -> Option<RawMirror> {
    let service = table.text("service", name);
    let share = table.number("share");
    let body_max_bytes = table.size("body_max").value;
    if share.value == 0.0 {
        table.problems.report(
            Diagnostic::warning("a mirror that receives nothing", share.span, "no share")
                .help("leave it out, or write share = 0.01"),
        );
    }
    table.finish();
    Some(RawMirror { service: service?, share: share.value, body_max_bytes })
}

/// The most limits of one route.
const RATE_LIMITS_MAX: usize = 8;

pub(super) fn rate_limits(table: &mut Table<'_>) -> Vec<RawRateLimit> {
    let tables = table.tables("rate_limit");
    if tables.len() > RATE_LIMITS_MAX {
        let title = format!("a route has at most {RATE_LIMITS_MAX} rate limits");
        let span = table.span_of("rate_limit");
        let these = format!("{} limits", tables.len());
        table.problems.report(Diagnostic::error(title, span, these));
    }
    if is_empty_list(table.peek("rate_limit")) {
        table.problems.report(
            Diagnostic::error("no rate would be limited", table.span_of("rate_limit"), "empty")
                .help("leave `rate_limit` out"),
        );
    }
    let problems = table.problems;
    let mut limits: Vec<RawRateLimit> = Vec::new();
    for limit in tables.into_iter().filter_map(rate_limit) {
        let same = limits.iter().find(|other| other.limit.name == limit.limit.name);
        if let Some(other) = same {
            let title = format!("two rate limits of a route are called {}", limit.limit.name);
            problems.report(
                Diagnostic::error(title, limit.span.clone(), "this one")
                    .other(other.span.clone(), "and this one")
                    .help("give one of them a `name`"),
            );
        }
        limits.push(limit);
    }
    limits
}

fn rate_limit(mut table: Table<'_>) -> Option<RawRateLimit> {
    let (span, problems, found_before) =
        (table.span.clone(), table.problems, table.problems.count());
    let named = table.text("name", name);
    let requests = table.integer_if::<u32>("requests");
    let per = table.duration("per").value;
    let burst = table.integer_if::<u32>("burst");
    let wait_max = table.duration("wait_max").value;
    let by = table.text("by", |text| {
        let (word, name) = key_part(text);
        match (word.parse(), name) {
            (Ok(RateKeyWord::Client), None) => Ok(RateKey::Client),
            (Ok(RateKeyWord::Field), Some(field)) => http::field_name(field).map(RateKey::Field),
            (Ok(RateKeyWord::Cookie), Some(name)) => http::cookie_name(name).map(RateKey::Cookie),
            (Ok(RateKeyWord::User), None) => Ok(RateKey::User),
            (Ok(RateKeyWord::Claim), Some(path)) if !path.is_empty() => {
                Ok(RateKey::Claim(path.to_owned()))
            }
            (Ok(_) | Err(_), _) => {
                let known = ["client", "header:NAME", "cookie:NAME", "user", "claim:NAME"];
                Err(unknown_key_part(text, &known))
            }
        }
    });
    let scope = table.word_at("scope", LimitScope::Balancer);
    let is_announced = table.boolean("headers");
    table.finish();
    let requests = requests?.value;
    if problems.count() > found_before {
        return None;
    }
    let by = by.map_or(RateKey::Client, |at| at.value);
    let name = match named {
        Some(at) => at.value,
        None => format!("{}-{}", by.as_str(), show_duration(per)).into(),
    };
    let burst = burst.map_or(requests, |at| at.value);
    let At { value: scope, span: scope_span } = scope;
    let limit = RateLimit { name, by, scope, requests, per, burst, wait_max, is_announced };
    Some(RawRateLimit { limit, span, scope_span })
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
            let is_word = known.iter().any(|part| key_part(part).0 == text);
            let is_name = !is_word && http::field_name(text).is_ok();
            let meant = if is_name { text } else { "NAME" };
            let shown: Vec<_> = known.iter().map(|k| quote(&k.replace("NAME", meant))).collect();
            let shown: Vec<_> = shown.iter().map(String::as_str).collect();
            wrong.help(format!("write {}", either(&shown)))
        }
    }
}
