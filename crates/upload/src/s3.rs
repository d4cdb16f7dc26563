//! One store: its requests, signed, and what its answers mean.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rusty_s3::actions::{
    CompleteMultipartUpload, CompleteMultipartUploadResponse, CreateMultipartUpload,
};
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use transport::client::{Connection, ExchangeLimits, Request};
use transport::dial::DialOptions;
use url::Url;

use crate::error::UploadError;
use crate::plan::Plan;
use crate::retry::{Retries, again};

/// How long a signature is valid. A part is signed when it is sent, so this is for the clocks'
/// difference and for the slowest part.
const SIGNED_FOR: Duration = Duration::from_secs(6 * 3600);

/// The most of an answer's body that is read: answers here are a few lines of XML.
const ANSWER_MAX_BYTES: usize = 64 * 1024;

/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Where the bucket's name stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// In the path: `https://s3.example.com/bucket/key`.
    Path,
    /// In the host: `https://bucket.s3.example.com/key`.
    Host,
}

/// A bucket of one endpoint, and what opens it.
pub struct Store {
    /// What it is called in tables: its region, or the name it was given.
    pub name: String,
    bucket: Bucket,
    credentials: Credentials,
    tls: Option<(Arc<rustls::ClientConfig>, ServerName<'static>)>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Store {
    /// A store at `url` (http or https). `tls`: what connections to https speak; not needed for http.
    ///
    /// # Errors
    /// When the URL and the bucket make no address of a store: one line.
    pub fn new(
        name: &str,
        url: &str,
        region: &str,
        bucket: &str,
        addressing: Addressing,
        credentials: Credentials,
        tls: Option<Arc<rustls::ClientConfig>>,
    ) -> Result<Store, String> {
        let wrong = |what: &dyn fmt::Display| format!("{name}: {url} is no endpoint: {what}");
        let endpoint = Url::parse(url).map_err(|error| wrong(&error))?;
        let style = match addressing {
            Addressing::Path => UrlStyle::Path,
            Addressing::Host => UrlStyle::VirtualHost,
        };
        let bucket = Bucket::new(endpoint, style, bucket.to_owned(), region.to_owned())
            .map_err(|error| wrong(&error))?;
        let host = bucket.base_url().host_str().unwrap_or_default();
        let tls = match (bucket.base_url().scheme(), tls) {
            ("https", Some(config)) => {
                let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                let server = ServerName::try_from(bare).map_err(|error| wrong(&error))?;
                Some((config, server))
            }
            ("https", None) => return Err(wrong(&"there is no TLS for it")),
            _ => None,
        };
        Ok(Store { name: name.to_owned(), bucket, credentials, tls })
    }

    pub(crate) fn shown_url(&self) -> String {
        self.bucket.base_url().to_string()
    }

    pub(crate) fn bucket_name(&self) -> &str {
        self.bucket.name()
    }

    /// Begins an upload; yields its id.
    pub(crate) async fn create(&self, plan: &Plan) -> Result<String, UploadError> {
        let action = CreateMultipartUpload::new(&self.bucket, Some(&self.credentials), &plan.key);
        let answer = self.ask(plan, "POST", || action.sign(SIGNED_FOR), "").await?;
        CreateMultipartUpload::parse_response(&answer)
            .map(|response| response.upload_id().to_owned())
            .map_err(|error| {
                UploadError::Unexpected(format!(
                    "not an answer of S3 to CreateMultipartUpload: {error}"
                ))
            })
    }

    /// Makes the parts an object.
    ///
    /// The status is sent before the outcome is known, so that 200 may carry an error, which may
    /// pass as any other. And an attempt whose answer was lost may have done its work: then the
    /// upload is gone when it is asked for again, and the object is there.
    pub(crate) async fn complete(
        &self,
        plan: &Plan,
        id: &str,
        tags: &[&str],
    ) -> Result<(), UploadError> {
        let action = || {
            let tags = tags.iter().copied();
            CompleteMultipartUpload::new(&self.bucket, Some(&self.credentials), &plan.key, id, tags)
        };
        let body = action().body();
        let mut retries = Retries::default();
        loop {
            let error = match self.ask_once(plan, "POST", &action().sign(SIGNED_FOR), &body).await {
                Ok(answer) if CompleteMultipartUploadResponse::parse(&answer).is_ok() => {
                    return Ok(());
                }
                Ok(answer) => UploadError::refused(200, answer.as_bytes()),
                Err(error) => error,
            };
            if retries.0 > 0 && error.is_no_such_upload() && self.holds_object(plan).await {
                return Ok(());
            }
            again(plan, &mut retries, error).await?;
        }
    }

    /// Whether the object is there, as long as it should be.
    async fn holds_object(&self, plan: &Plan) -> bool {
        let mut retries = Retries::default();
        loop {
            let attempt = async {
                let mut connection = self.connect(plan).await?;
                let action = self.bucket.head_object(Some(&self.credentials), &plan.key);
                exchange(&mut connection, plan, "HEAD", &action.sign(SIGNED_FOR), &[]).await?;
                let length = connection.head().field("content-length");
                let length = length.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
                Ok(length == Some(plan.size_bytes))
            };
            match attempt.await {
                Ok(is_whole) => return is_whole,
                Err(error) => {
                    if again(plan, &mut retries, error).await.is_err() {
                        return false;
                    }
                }
            }
        }
    }

    /// Removes the parts of an upload that will not be completed.
    pub(crate) async fn abort(&self, plan: &Plan, id: &str) -> Result<(), UploadError> {
        let action = self.bucket.abort_multipart_upload(Some(&self.credentials), &plan.key, id);
        self.ask(plan, "DELETE", || action.sign(SIGNED_FOR), "").await.map(drop)
    }

    /// Removes the object.
    pub(crate) async fn delete(&self, plan: &Plan) -> Result<(), UploadError> {
        let action = self.bucket.delete_object(Some(&self.credentials), &plan.key);
        self.ask(plan, "DELETE", || action.sign(SIGNED_FOR), "").await.map(drop)
    }

    /// The signed URL of a part.
    pub(crate) fn part_url(&self, plan: &Plan, id: &str, number: u64) -> Url {
        // At most PARTS_MAX.
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        let credentials = Some(&self.credentials);
        self.bucket.upload_part(credentials, &plan.key, number, id).sign(SIGNED_FOR)
    }

    /// A small request, tried again where that may help; yields the answer's body.
    async fn ask(
        &self,
        plan: &Plan,
        method: &str,
        url: impl Fn() -> Url,
        body: &str,
    ) -> Result<String, UploadError> {
        let mut retries = Retries::default();
        loop {
            match self.ask_once(plan, method, &url(), body).await {
                Ok(answer) => return Ok(answer),
                Err(error) => again(plan, &mut retries, error).await.map(drop)?,
            }
        }
    }

    /// One attempt of it.
    async fn ask_once(
        &self,
        plan: &Plan,
        method: &str,
        url: &Url,
        body: &str,
    ) -> Result<String, UploadError> {
        let mut connection = self.connect(plan).await?;
        let (_, answer) = exchange(&mut connection, plan, method, url, body.as_bytes()).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// A new connection to the first of the name's addresses that takes one.
    pub(crate) async fn connect(&self, plan: &Plan) -> Result<Connection, UploadError> {
        let url = self.bucket.base_url();
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(443);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let lookup = |why: String| UploadError::Lookup { host: host.to_owned(), why };
        let found =
            tokio::time::timeout(plan.connect_timeout, transport::names::addresses(bare, port));
        let found = found.await.map_err(|_| lookup("the lookup took too long".to_owned()))?;
        let found = found.map_err(|error| lookup(error.to_string()))?;
        let options = DialOptions {
            connect_timeout: plan.connect_timeout,
            user_timeout: None,
            tls: self.tls.clone(),
        };
        let mut last = lookup("the name has none".to_owned());
        for address in found.into_iter().take(ADDRESSES_MAX) {
            match Connection::open(address, &options).await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = UploadError::Dial(error),
            }
        }
        Err(last)
    }
}

/// One exchange; yields status and body of a success.
pub(crate) async fn exchange(
    connection: &mut Connection,
    plan: &Plan,
    method: &str,
    url: &Url,
    body: &[u8],
) -> Result<(u16, Vec<u8>), UploadError> {
    let host = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let request = Request { method, path: target, host: &host, fields: &[], body };
    let limits = ExchangeLimits { timeout: plan.timeout, body_max_bytes: ANSWER_MAX_BYTES };
    let response = connection.exchange(&request, &limits).await.map_err(UploadError::Exchange)?;
    match response.status {
        status @ 200..=299 => Ok((status, response.body)),
        status => Err(UploadError::refused(status, &response.body)),
    }
}
