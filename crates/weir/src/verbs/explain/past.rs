//! `weir explain --last 10m` and `weir explain FILE`: what happened, in sentences.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use flate2::read::GzDecoder;

use super::super::bundle::gather;
use super::super::check::{print, print_json};
use crate::api_client::Client;
use crate::flags::{Exit, ExplainArgs};
use crate::incident::{self, Bundle};

/// The largest text of a bundle that is read: more than `weir bundle` writes (see `NUMBERS_MAX` there). Reading it may
/// take several times as much memory.
const BYTES_MAX: u64 = 256 << 20;

/// What a gzip file begins with (RFC 1952 section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

pub(super) fn of_balancer(last: Duration, args: &ExplainArgs) -> Exit {
    match Client::new(&args.admin).and_then(|client| gather::gather(&client, last)) {
        Ok(bundle) => tell(&bundle, args.json),
        Err(error) => error.tell(),
    }
}

pub(super) fn of_file(path: &Path, json: bool) -> Exit {
    let read = read(path).map_err(|error| error.to_string());
    let bundle = read.and_then(|text| Bundle::read(&text).map_err(|why| why.to_string()));
    match bundle {
        Ok(bundle) => tell(&bundle, json),
        Err(why) => {
            eprintln!("weir: {}: {why}", path.display());
            Exit::Mistake
        }
    }
}

fn tell(bundle: &Bundle, json: bool) -> Exit {
    let account = incident::account(bundle);
    if json { print_json(&serde_json::json!(account)) } else { print(&incident::text(&account)) }
}

/// Returns the text of a file, decompressed if it is compressed.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut begin = Vec::new();
    file.by_ref().take(GZIP.len() as u64).read_to_end(&mut begin)?;
    let is_compressed = begin == GZIP;
    let whole = io::Cursor::new(begin).chain(file);
    if is_compressed { bounded(GzDecoder::new(whole)) } else { bounded(whole) }
}

fn bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    from.take(BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(io::Error::other("larger than 256 MiB when decompressed"));
    }
    Ok(text)
}
