//! Parses endpoints into stores, or returns one line that describes the error.

use std::sync::Arc;

use tls::rustls::ClientConfig;
use upload::{Addressing, Credentials, Store};

use crate::flags::bench::UploadArgs;
use crate::verbs::bench::authorities;

/// What the words name.
pub(super) fn stores(args: &UploadArgs) -> Result<Vec<Store>, String> {
    let credentials = credentials(args)?;
    let mut tls = None;
    let mut stores = Vec::new();
    for word in &args.endpoints {
        let place = place(word, args)?;
        let bucket = args.bucket.replace("{region}", &place.name);
        if bucket.is_empty() || bucket.contains(['/', '?', '#', '%']) {
            return Err(format!("{bucket:?} is no name of a bucket"));
        }
        if place.url.starts_with("https://") && tls.is_none() {
            tls = Some(client_tls(args)?);
        }
        // Amazon's certificates hold for one label before the region.
        let in_host = place.in_host && !bucket.contains('.');
        let addressing = if in_host { Addressing::Host } else { Addressing::Path };
        let region = &place.region;
        let keys = credentials.clone();
        let store =
            Store::new(&place.name, &place.url, region, &bucket, addressing, keys, tls.clone())?;
        stores.push(store);
    }
    check_key(args.key.as_deref())?;
    Ok(stores)
}

/// An endpoint as it is meant.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    name: String,
    url: String,
    region: String,
    in_host: bool,
}

/// `us-west-2`, `http://127.0.0.1:7070`, `frankfurt=https://s3.example.com`.
fn place(word: &str, args: &UploadArgs) -> Result<Place, String> {
    let is_url = |text: &str| text.starts_with("http://") || text.starts_with("https://");
    let region = args.region.clone();
    let in_host = args.virtual_host;
    if is_url(word) {
        let host = word.split_once("://").map_or(word, |(_, rest)| rest);
        let name = host.split(['/', '?']).next().unwrap_or(host).to_owned();
        let name = name.rsplit_once('@').map_or(name.clone(), |(_, host)| host.to_owned());
        return Ok(Place { name, url: word.to_owned(), region, in_host });
    }
    if let Some((name, url)) = word.split_once('=').filter(|(_, url)| is_url(url)) {
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(format!("{word:?}: a name, then = and the URL"));
        }
        return Ok(Place { name: name.to_owned(), url: url.to_owned(), region, in_host });
    }
    let is_region = word.contains('-')
        && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !is_region {
        return Err(format!(
            "{word:?} is no endpoint: a region such as us-west-2, a URL such as \
             https://s3.example.com, or NAME=URL"
        ));
    }
    Ok(Place {
        name: word.to_owned(),
        url: format!("https://s3.{word}.amazonaws.com"),
        region: word.to_owned(),
        in_host: true,
    })
}

/// A key that a URL cannot hold as it is would be another object's, or the bucket itself.
fn check_key(key: Option<&str>) -> Result<(), String> {
    let Some(key) = key else { return Ok(()) };
    let dots = key.split('/').any(|segment| matches!(segment, "." | ".."));
    if key.is_empty() || key.len() > 1024 || dots {
        return Err(format!(
            "{key:?} is no key that can be uploaded to: 1 to 1024 bytes, no segment . or .."
        ));
    }
    Ok(())
}

fn credentials(args: &UploadArgs) -> Result<Credentials, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let access = args.access_key.clone().or_else(|| variable("AWS_ACCESS_KEY_ID")).ok_or(
        "no access key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give --access-key \
         and --secret-key-file",
    )?;
    let secret = match &args.secret_key_file {
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| format!("{}: {error}", file.display()))?
            .trim()
            .to_owned(),
        None => variable("AWS_SECRET_ACCESS_KEY")
            .ok_or("no secret key: set AWS_SECRET_ACCESS_KEY, or give --secret-key-file")?,
    };
    // A token belongs to the key that the environment holds.
    let token = variable("AWS_SESSION_TOKEN").filter(|_| args.access_key.is_none());
    Ok(match token {
        Some(token) => Credentials::new_with_token(access, secret, token),
        None => Credentials::new(access, secret),
    })
}

/// What connections to https speak.
fn client_tls(args: &UploadArgs) -> Result<Arc<ClientConfig>, String> {
    let config = authorities::client(args.cacert.as_deref(), args.insecure, &[b"http/1.1"])?;
    config.ok_or_else(|| {
        "this system has no authorities to verify certificates by: give --cacert".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::{BenchVerb, Cli, Verb};

    fn args(words: &[&str]) -> UploadArgs {
        let words = ["weir", "bench", "upload", "--bucket", "b"].iter().chain(words);
        let cli = Cli::try_parse_from(words).unwrap();
        match cli.verb {
            Verb::Bench(bench) => match bench.verb {
                Some(BenchVerb::Upload(args)) => args,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn endpoints_are_regions_urls_or_names_with_urls() {
        let args = args(&["x-1", "--region", "eu"]);
        let place = |word| place(word, &args).map(|place| (place.name, place.url, place.region));
        let of = |name: &str, url: &str, region: &str| {
            Ok((name.to_owned(), url.to_owned(), region.to_owned()))
        };
        assert_eq!(
            place("us-west-2"),
            of("us-west-2", "https://s3.us-west-2.amazonaws.com", "us-west-2")
        );
        assert_eq!(
            place("http://u:p@[::1]:7070/x"),
            of("[::1]:7070", "http://u:p@[::1]:7070/x", "eu")
        );
        assert_eq!(place("here=https://s3.test"), of("here", "https://s3.test", "eu"));
        for wrong in ["", "s3", "ftp://x", "=http://x", "US-EAST-1", "a b"] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_that_would_be_another_objects_are_refused() {
        for wrong in ["", "..", "a/../b", "./a", &"x".repeat(1025)] {
            assert!(check_key(Some(wrong)).is_err(), "{wrong}");
        }
        for right in ["a", "a/b", "a..b", "/a", "grün?&=+ x"] {
            assert_eq!(check_key(Some(right)), Ok(()), "{right}");
        }
    }
}
