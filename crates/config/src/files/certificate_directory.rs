//! The certificates of a directory (`certificate_directory`), with their keys: files of one certificate each,
//! as HAProxy reads them, and the folders that certbot and Kubernetes make.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use model::{Certificate, Material};
use tls::{Facts, Part};

use super::{From, Reader, Usable};
use crate::Unreadable;
use crate::diagnostic::{At, Diagnostic, shown_path};

/// In a folder of the directory: chain and key, as certbot and Kubernetes name them.
const IN_FOLDERS: [(&str, &str); 2] = [("fullchain.pem", "privkey.pem"), ("tls.crt", "tls.key")];
/// What else files `*.pem` and `*.crt` may have.
const OTHER_PEM: [&str; 4] =
    ["KEY-----", "CERTIFICATE REQUEST-----", "PARAMETERS-----", "X509 CRL-----"];
/// The authority of a certificate, in the secrets that cert-manager makes.
const AUTHORITY: &str = "ca.crt";
/// Maximum of all files together.
const BYTES_MAX: usize = 64 * 1024 * 1024;

impl Reader<'_> {
    /// Returns the certificates of a directory; of several for one name, the one that is valid longest comes
    /// first. `None`: there are none, or one of them cannot be used, which is reported.
    pub(super) fn certificate_directory(&self, at: &At<PathBuf>) -> Option<Vec<Usable>> {
        let folder = self.path(at);
        let names = self.surroundings.names(&folder, "*");
        let mut names = names.map_err(|error| self.unreadable(at, error)).ok()?;
        names.sort_unstable();
        let mut bytes = 0;
        let mut found = Vec::new();
        for name in names {
            let Some(entry) = self.entry(at, &folder.join(name)).transpose() else { continue };
            if let Ok((certificate, _)) = &entry {
                bytes += certificate.chain.bytes.len() + certificate.key.bytes.len();
            }
            found.push(entry);
            if bytes > BYTES_MAX {
                let title = format!("more than {} MB of certificates", BYTES_MAX >> 20);
                let label = "remove those that are not needed";
                let diagnostic = Diagnostic::error(title, at.span.clone(), label);
                self.problems.report(diagnostic.on_machine());
                return None;
            }
        }
        if found.is_empty() {
            let title = format!("no certificate in {}", shown_path(&at.value));
            let diagnostic = Diagnostic::error(title, at.span.clone(), "no file *.pem or *.crt");
            self.problems.report(diagnostic.help("put certificates there, each with its key in the same file or in NAME.key; or folders with fullchain.pem and privkey.pem").on_machine());
            return None;
        }
        let mut certificates = found.into_iter().collect::<Result<Vec<_>, ()>>().ok()?;
        certificates.sort_by_key(|(_, facts)| Reverse(facts.not_after));
        let usable = certificates.into_iter().filter_map(|(certificate, facts)| {
            let from = At { value: certificate.chain.path.clone(), span: at.span.clone() };
            self.usable(certificate, facts, (from, From::Directory))
        });
        Some(usable.collect())
    }

    /// Returns the certificate of one entry of the directory; none if it has nothing to do with one.
    fn entry(&self, at: &At<PathBuf>, path: &Path) -> Result<Option<(Certificate, Facts)>, ()> {
        match path.extension().map(OsStr::as_encoded_bytes) {
            _ if path.file_name() == Some(OsStr::new(AUTHORITY)) => Ok(None),
            Some(b"pem" | b"crt") => {
                let mut beside = path.with_extension("").into_os_string();
                beside.push("-key.pem");
                let mut after = path.to_path_buf().into_os_string();
                after.push(".key");
                let keys = [path.with_extension("key"), beside.into(), after.into()];
                let chain = self.surroundings.file(path);
                let chain = self.material(&of(path, at), chain).ok_or(())?;
                self.pair(at, chain, &keys)
            }
            Some(b"key") => Ok(None),
            _ => {
                for (chain, key) in
                    IN_FOLDERS.map(|(chain, key)| (path.join(chain), path.join(key)))
                {
                    match self.part(at, &chain)? {
                        Some(chain) => return self.pair(at, chain, &[key]),
                        None if self.part(at, &key)?.is_some() => {
                            let title = format!("no certificate beside {}", shown_path(&key));
                            let label = format!("it has no {}", shown_path(&chain));
                            let diagnostic = Diagnostic::error(title, at.span.clone(), label);
                            self.problems.report(diagnostic.on_machine());
                            return Err(());
                        }
                        None => {}
                    }
                }
                Ok(None)
            }
        }
    }

    /// Returns a certificate with the key that is in its own file, or in one of `keys`; none if the file has
    /// something else.
    fn pair(
        &self,
        at: &At<PathBuf>,
        chain: Material,
        keys: &[PathBuf],
    ) -> Result<Option<(Certificate, Facts)>, ()> {
        if !has(&chain, "-----BEGIN CERTIFICATE-----") {
            if OTHER_PEM.iter().any(|other| has(&chain, other)) {
                return Ok(None);
            }
            let title = format!("no certificate in {}", shown_path(&chain.path));
            let diagnostic = Diagnostic::error(title, at.span.clone(), "it has none in PEM");
            self.problems.report(
                diagnostic
                    .help("a certificate begins with -----BEGIN CERTIFICATE-----; give other files another ending")
                    .on_machine(),
            );
            return Err(());
        }
        let mut key = has(&chain, "PRIVATE KEY-----").then(|| chain.clone());
        for path in keys {
            if key.is_none() {
                key = self.part(at, path)?;
            }
        }
        let Some(key) = key else {
            let title = format!("no key for {}", shown_path(&chain.path));
            let names: Vec<_> = keys.iter().map(|path| shown_path(path)).collect();
            let label = "neither in its own file nor beside it";
            let diagnostic = Diagnostic::error(title, at.span.clone(), label);
            let help = format!("add it to the file, or as {}", names.join(" or "));
            self.problems.report(diagnostic.help(help).on_machine());
            return Err(());
        };
        let certificate = Certificate { chain, key, ocsp: None, acme: None };
        match tls::certificate(&certificate) {
            Ok(facts) => Ok(Some((certificate, facts))),
            Err(mistake) => {
                let part = match mistake.about {
                    Part::Key => &certificate.key.path,
                    Part::Chain | Part::Ocsp | Part::Ca => &certificate.chain.path,
                };
                self.report_mistake(mistake, &of(part, at));
                Err(())
            }
        }
    }

    /// Returns a file of a certificate; none if it does not exist.
    fn part(&self, at: &At<PathBuf>, path: &Path) -> Result<Option<Material>, ()> {
        match self.surroundings.file(path) {
            Err(Unreadable { is_missing: true, .. }) => Ok(None),
            found => self.material(&of(path, at), found).map(Some).ok_or(()),
        }
    }
}

/// Returns a file of the directory that `at` names.
fn of(path: &Path, at: &At<PathBuf>) -> At<PathBuf> {
    At { value: path.to_path_buf(), span: at.span.clone() }
}

fn has(material: &Material, text: &str) -> bool {
    material.bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
