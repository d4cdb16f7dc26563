//! The state directory: account, certificates and the orders under way.
//!
//! ```text
//! STATE/                               settings.state
//!   acme.example.com-0123456789abcdef/ one for each directory URL; mode 0700
//!     lock                             locked (flock) by the process that orders certificates
//!     account.json                     the account's key and URL, and its contacts
//!     example.org-0123456789abcdef.pem private key and chain, leaf first
//!     example.org-0123456789abcdef.order  an order under way: its URL and the private key
//! ```
//!
//! Every file has mode 0600 and is replaced by renaming, so that a reader sees the old contents or
//! the new ones. Key and chain share a file, so that they always belong together. The number in a
//! file's name is a digest of all names of the certificate, in any order; that of a folder is a
//! digest of the URL, so certificates of a staging authority are never taken for those of another.

mod file;
mod folder;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use instant_acme::AccountCredentials;
use model::{Acme, Certificate, Material};
use os::secret_file::{self, Links, SecretError};
use serde::{Deserialize, Serialize};
use tls::Facts;

pub(crate) use file::Lock;

/// Maximum size of a file that is read: a key and a chain of 16 certificates take 40 kB.
const FILE_MAX_BYTES: u64 = 256 * 1024;
/// The file that is locked.
const LOCK: &str = "lock";
/// The part of a host's or certificate's name that stands in a file's name.
const NAME_MAX_BYTES: usize = 80;

/// An issued certificate with its key.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Chain and key; both materials are the one file.
    pub certificate: Certificate,
    /// Its contents.
    pub facts: Facts,
    /// When it was stored, in seconds since 1970-01-01 UTC.
    pub stored_s: i64,
}

/// The state directory of one authority. It can be opened while the process is still root.
#[derive(Clone, Debug)]
pub struct State {
    folder: PathBuf,
}

/// Why the state directory or one of its files cannot be used. Displays as one line, without
/// secrets.
#[derive(Debug)]
pub struct StateError(String);

/// The account, as stored.
#[derive(Deserialize, Serialize)]
pub(crate) struct StoredAccount {
    /// URL and key.
    pub(crate) credentials: AccountCredentials,
    /// The contacts that the authority knows.
    pub(crate) contacts: Vec<String>,
}

/// An order under way, so that it is finished after a restart.
#[derive(Deserialize, Serialize)]
pub(crate) struct StoredOrder {
    /// The order's URL.
    pub(crate) url: String,
    /// The private key of the certificate, PEM: an order that is finalised when the process ends
    /// is for this key.
    pub(crate) key: String,
}

/// Returns the certificate for `names` that is stored in the settings' state directory; `None`:
/// none has been issued. It may have expired. Creates nothing.
///
/// # Errors
/// The file is damaged, belongs to other names, or cannot be read. The caller reports it and goes
/// on without; [`crate::start`] orders another one.
pub fn stored(settings: &Acme, names: &[String]) -> Result<Option<Stored>, StateError> {
    State { folder: folder(settings) }.certificate(names)
}

impl State {
    /// Opens the settings' state directory, and creates it if it is missing. `owner` (user and
    /// group IDs): whom new files belong to, if this process, still root, will switch to that user.
    ///
    /// # Errors
    /// It cannot be created or used.
    pub fn open(settings: &Acme, owner: Option<(u32, u32)>) -> Result<State, StateError> {
        let state = State { folder: folder(settings) };
        folder::prepare(&state.folder, LOCK, owner).map_err(|error| {
            let shown = state.folder.display();
            StateError(format!(
                "cannot use the ACME state directory {shown}: {error}; Weir's user must be able to \
                 write there"
            ))
        })?;
        Ok(state)
    }

    /// Returns the stored certificate for `names`, as [`stored`] does.
    ///
    /// # Errors
    /// Those of [`stored`].
    pub fn certificate(&self, names: &[String]) -> Result<Option<Stored>, StateError> {
        let path = self.path(names, "pem");
        let Some((bytes, modified)) = read(&path)? else {
            return Ok(None);
        };
        let (certificate, facts) =
            parse(&path, Arc::from(bytes), names).map_err(|why| damaged(&path, &why))?;
        Ok(Some(Stored { certificate, facts, stored_s: modified }))
    }

    /// Parses a private key and chain (PEM) that were received from another member. Fails with one line if they are
    /// unusable or not for `names`.
    pub(crate) fn received(
        &self,
        names: &[String],
        pem: &Arc<[u8]>,
        now_s: i64,
    ) -> Result<Stored, String> {
        let (certificate, facts) = parse(&self.path(names, "pem"), Arc::clone(pem), names)?;
        Ok(Stored { certificate, facts, stored_s: now_s })
    }

    /// Locks the directory; `None`: another process orders certificates now.
    pub(crate) fn lock(&self) -> Result<Option<Lock>, StateError> {
        let path = self.lock_path();
        file::lock(&path)
            .map_err(|error| StateError(format!("cannot lock {}: {error}", path.display())))
    }

    /// Stores a certificate: `pem` is its key and its chain.
    pub(crate) fn put_certificate(
        &self,
        _: &Lock,
        names: &[String],
        pem: &[u8],
    ) -> Result<(), StateError> {
        put(&self.path(names, "pem"), pem)
    }

    pub(crate) fn account(&self) -> Result<Option<StoredAccount>, StateError> {
        read_json(&self.account_path())
    }

    pub(crate) fn put_account(&self, _: &Lock, account: &StoredAccount) -> Result<(), StateError> {
        put_json(&self.account_path(), account)
    }

    /// Renames the account's file, so that another account is made. The key is kept for a person.
    pub(crate) fn set_account_aside(&self, _: &Lock) -> Result<(), StateError> {
        let path = self.account_path();
        match std::fs::rename(&path, path.with_added_extension("old")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StateError(format!("cannot rename {}: {error}", path.display())))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn order(&self, names: &[String]) -> Result<Option<StoredOrder>, StateError> {
        read_json(&self.path(names, "order"))
    }

    pub(crate) fn put_order(
        &self,
        _: &Lock,
        names: &[String],
        order: &StoredOrder,
    ) -> Result<(), StateError> {
        put_json(&self.path(names, "order"), order)
    }

    /// Forgets the order under way, if there is one.
    pub(crate) fn forget_order(&self, _: &Lock, names: &[String]) {
        let path = self.path(names, "order");
        if let Err(error) = std::fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            // The next attempt finds an order that is done, and forgets it again.
            tracing::warn!(file = %path.display(), %error, "cannot remove the file of a finished order");
        }
    }

    fn lock_path(&self) -> PathBuf {
        self.folder.join(LOCK)
    }

    fn account_path(&self) -> PathBuf {
        self.folder.join("account.json")
    }

    fn path(&self, names: &[String], extension: &str) -> PathBuf {
        let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        sorted.dedup();
        // Not the first as given: the order of names must not matter.
        let first = sorted.first().copied().unwrap_or_default();
        self.folder.join(format!("{}.{extension}", file_name(first, &sorted.join("\n"))))
    }
}

/// Parses a private key and chain, PEM, in one text. Fails with one line if they are unusable or not for `names`.
pub(crate) fn parse(
    path: &Path,
    pem: Arc<[u8]>,
    names: &[String],
) -> Result<(Certificate, Facts), String> {
    let material = Material { path: path.to_owned(), bytes: pem };
    let certificate =
        Certificate { chain: material.clone(), key: material, ocsp: None, acme: None };
    let facts = tls::certificate(&certificate).map_err(|mistake| mistake.to_string())?;
    if !same_names(&facts.names, names) {
        return Err(format!("it is for other names: {}", facts.names.join(", ")));
    }
    Ok((certificate, facts))
}

/// Returns whether two lists have the same names, in any order.
fn same_names(left: &[String], right: &[String]) -> bool {
    left.iter().all(|name| right.contains(name)) && right.iter().all(|name| left.contains(name))
}

fn folder(settings: &Acme) -> PathBuf {
    let url = &*settings.directory;
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split('/').next().unwrap_or_default();
    settings.state.join(file_name(host, url))
}

/// Returns a file name for people and machines: `shown`, as far as it is harmless, and a digest of
/// `whole`.
fn file_name(shown: &str, whole: &str) -> String {
    let harmless = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    // Dots are harmless, except at the start.
    let name = shown.chars().take(NAME_MAX_BYTES).enumerate();
    let name: String =
        name.map(|(index, c)| if c == '.' && index > 0 { c } else { harmless(c) }).collect();
    let digest = digest(&SHA256, whole.as_bytes());
    let eight = digest.as_ref().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    format!("{name}-{eight:016x}")
}

/// Returns a file's bytes, and when it was modified; `None`: it does not exist.
fn read(path: &Path) -> Result<Option<(Vec<u8>, i64)>, StateError> {
    match secret_file::read(path, FILE_MAX_BYTES, Links::Refused) {
        Ok(secret) => {
            let modified = secret.metadata.modified().unwrap_or(std::time::UNIX_EPOCH);
            let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            Ok(Some((secret.bytes, since.as_secs().cast_signed())))
        }
        Err(SecretError::Unreadable(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StateError(error.line("ACME state file", path))),
    }
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, StateError> {
    let Some((bytes, _)) = read(path)? else {
        return Ok(None);
    };
    // An error of serde_json may quote the file, so only its place is shown.
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        damaged(
            path,
            &format_args!("not as expected at line {}, column {}", error.line(), error.column()),
        )
    })
}

fn put_json(path: &Path, value: &impl Serialize) -> Result<(), StateError> {
    let json = serde_json::to_vec(value)
        .map_err(|_| StateError(format!("cannot write {}: not JSON", path.display())))?;
    put(path, &json)
}

fn put(path: &Path, contents: &[u8]) -> Result<(), StateError> {
    // The caller holds the directory's lock, so no other process uses that name.
    os::plain_file::replace(path, &path.with_added_extension("new"), contents)
        .map_err(|error| StateError(format!("cannot write {}: {error}", path.display())))
}

fn damaged(path: &Path, why: &dyn fmt::Display) -> StateError {
    StateError(format!("the ACME state file {} is damaged and is ignored: {why}", path.display()))
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StateError {}
