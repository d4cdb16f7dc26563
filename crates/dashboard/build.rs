//! Makes the table of files that `web/served.json` lists, with a compressed copy and a tag of each, without comments.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed build says why")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() {
    let variable = |name| PathBuf::from(env::var_os(name).expect("cargo sets it"));
    let web = variable("CARGO_MANIFEST_DIR").join("../../web");
    let out = variable("OUT_DIR");
    let list = web.join("served.json");
    println!("cargo::rerun-if-changed={}", list.display());
    let served: BTreeMap<String, String> =
        serde_json::from_slice(&read(&list)).expect("web/served.json is a table of texts");
    let mut table = String::from("[\n");
    for (index, (path, name)) in served.iter().enumerate() {
        let file = fs::canonicalize(web.join(name))
            .unwrap_or_else(|error| panic!("web/served.json lists {name}: {error}"));
        println!("cargo::rerun-if-changed={}", file.display());
        let (mut bytes, media_type) = (read(&file), media_type(&file));
        // Other files are copies of other projects, whose comments are their licences.
        if name.starts_with("src/") || name.starts_with("styles/") {
            let text = String::from_utf8(bytes).expect("sources are UTF-8");
            bytes =
                without_comments(&text, Path::new(name).extension().is_some_and(|it| it == "js"))
                    .into_bytes();
        }
        let plain = out.join(format!("{index}.plain"));
        fs::write(&plain, &bytes).expect("OUT_DIR is writable");
        let compressed = out.join(format!("{index}.gz"));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bytes).expect("memory does not fail");
        let gzip = encoder.finish().expect("memory does not fail");
        fs::write(&compressed, gzip).expect("OUT_DIR is writable");
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let (plain, compressed) = (plain.to_string_lossy(), compressed.to_string_lossy());
        let tag = format!("W/\"{:016x}\"", hasher.finish());
        writeln!(
            table,
            "File {{ path: {path:?}, media_type: {media_type:?}, tag: {tag:?}, plain: \
             include_bytes!({plain:?}), gzip: include_bytes!({compressed:?}) }},",
        )
        .expect("memory does not fail");
    }
    table += "]\n";
    fs::write(out.join("files.rs"), table).expect("OUT_DIR is writable");
}

/// Replaces lines that are only comments by empty ones, so that line numbers in a browser's console are those of the
/// sources. `web/tools/strip.js` has the same rule; `npm run check` proves that it changes no token.
fn without_comments(text: &str, script: bool) -> String {
    let mut inside = false;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        let own = line.trim();
        // Code may follow a comment in its line: "/** @type {Row} */ (one)".
        inside |= own.starts_with("/*") && (!own.contains("*/") || own.ends_with("*/"));
        let is_line = script && own.starts_with("//");
        if !inside && !is_line {
            kept += line;
        }
        inside &= !own.ends_with("*/");
        kept.push('\n');
    }
    kept
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn media_type(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => panic!("{} has an extension without a media type", file.display()),
    }
}
