//! Flags of `weir bench upload`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::units::size;

/// The most parts under way at once.
const PARALLEL_MAX: u64 = 256;
/// The largest part that is held in memory, in bytes.
const PART_MAX_BYTES: u64 = 1 << 30;

/// The words of `weir bench upload`.
#[derive(Debug, Args)]
pub(crate) struct UploadArgs {
    /// Endpoint: an AWS region such as `us-west-2`, a URL, or NAME=URL
    #[arg(value_name = "ENDPOINT", required = true, num_args = 1..=32)]
    pub(crate) endpoints: Vec<String>,

    /// The bucket; `{region}` in it stands for each endpoint's region or name
    #[arg(long, value_name = "NAME")]
    pub(crate) bucket: String,

    /// Size of the upload to each endpoint
    #[arg(long, value_name = "SIZE", default_value = "200MB", value_parser = size_of_object)]
    pub(crate) size: u64,

    /// Size of a part; Amazon S3 refuses parts below 5MiB, other stores take them
    #[arg(long, value_name = "SIZE", default_value = "5MiB", value_parser = size_of_part)]
    pub(crate) part_size: u64,

    /// Parts uploaded in parallel
    #[arg(
        long, value_name = "COUNT", default_value_t = 4,
        value_parser = clap::value_parser!(u64).range(1..=PARALLEL_MAX)
    )]
    pub(crate) parallel: u64,

    /// Retries of a part after a temporary failure
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    pub(crate) retries: u32,

    /// Timeout of one attempt of one part
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = crate::flags::times::duration)]
    pub(crate) timeout: Duration,

    /// Timeout of a connect
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::flags::times::duration)]
    pub(crate) connect_timeout: Duration,

    /// Upload under this name and keep the object; otherwise a new name, deleted at the end
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,

    /// Region for signing requests to endpoints given as URL
    #[arg(long, value_name = "REGION", default_value = "us-east-1")]
    pub(crate) region: String,

    /// Put the bucket's name into the host instead of the path, for endpoints given as URL
    #[arg(long)]
    pub(crate) virtual_host: bool,

    /// Access key [default: `AWS_ACCESS_KEY_ID`]
    #[arg(long, value_name = "KEY")]
    pub(crate) access_key: Option<String>,

    /// File with the secret key [default: `AWS_SECRET_ACCESS_KEY`]
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_key_file: Option<PathBuf>,

    /// File with the certificate authorities to trust (PEM) [default: the system's]
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,

    /// Do not verify certificates
    #[arg(long, conflicts_with = "cacert")]
    pub(crate) insecure: bool,

    /// Write all figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write a line for each part to this file, as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

fn size_of_object(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("at least one byte".to_owned()),
        size => Ok(size),
    }
}

fn size_of_part(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("at least one byte".to_owned()),
        size if size > PART_MAX_BYTES => Err("at most 1GiB: parts are held in memory".to_owned()),
        size => Ok(size),
    }
}
