//! The certificates of a directory (`certificate_directory`), with their keys: files of one certificate each,
//! as HAProxy reads them, and the folders that certbot and Kubernetes make.

use std::path::{Path, PathBuf};

use model::{Certificate, Material};
use tls::Part;

use super::{Reader, Usable};
use crate::Unreadable;
use crate::diagnostic::{At, Diagnostic, Severity, shown_path};

/// In a folder of the directory: chain and key, as certbot and Kubernetes name them.
const IN_FOLDERS: [(&str, &str); 2] = [("fullchain.pem", "privkey.pem"), ("tls.crt", "tls.key")];
/// The endings of files with a certificate.
const ENDINGS: [&str; 2] = [".pem", ".crt"];
/// Of a file with the key, after the name of the certificate's file without its ending.
const KEY_ENDINGS: [&str; 2] = [".key", "-key.pem"];

impl Reader<'_> {
    /// Returns the certificates of a directory that are valid today, in order of the names of their files.
    /// `None`: one of them cannot be used, which is reported.
    pub(super) fn certificate_directory(&self, at: &At<PathBuf>) -> Option<Vec<Usable>> {
        let folder = self.path(at);
        let names = self.surroundings.names(&folder, "*");
        let mut names = names.map_err(|error| self.unreadable(at, error)).ok()?;
        names.sort_unstable();
        let mut usable = Some(Vec::new());
        let mut any = false;
        for name in names {
            let Some(certificate) = self.entry(at, &folder.join(name)).transpose() else {
                continue;
            };
            any = true;
            match (certificate, &mut usable) {
                (Ok(certificate), Some(all)) => match tls::certificate(&certificate) {
                    // One that has expired must not keep the others from being used.
                    Ok(facts) => {
                        all.extend(self.usable(certificate, facts, &at.span, Severity::Warning));
                    }
                    Err(mistake) => {
                        let part = match mistake.about {
                            Part::Key => certificate.key.path,
                            Part::Chain | Part::Ocsp | Part::Ca => certificate.chain.path,
                        };
                        self.report_mistake(mistake, &At { value: part, span: at.span.clone() });
                        usable = None;
                    }
                },
                _ => usable = None,
            }
        }
        if !any {
            let title = format!("no certificate in {}", shown_path(&at.value));
            let diagnostic = Diagnostic::error(title, at.span.clone(), "no file *.pem or *.crt");
            self.problems.report(diagnostic.help("put certificates there, each with its key in the same file or in NAME.key; or folders with fullchain.pem and privkey.pem").on_machine());
            return None;
        }
        usable
    }

    /// Returns the certificate of one entry of the directory; none if it has nothing to do with one.
    fn entry(&self, at: &At<PathBuf>, path: &Path) -> Result<Option<Certificate>, ()> {
        let name = path.to_string_lossy();
        if let Some(stem) = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)) {
            let keys = KEY_ENDINGS.map(|ending| PathBuf::from(format!("{stem}{ending}")));
            return self.pair(at, path, &keys);
        }
        for (chain, key) in IN_FOLDERS {
            let pair = self.pair(at, &path.join(chain), &[path.join(key)])?;
            if pair.is_some() {
                return Ok(pair);
            }
        }
        Ok(None)
    }

    /// Returns a certificate with the key that is in its own file, or in one of `keys`; none if the file does
    /// not exist or has no certificate.
    fn pair(
        &self,
        at: &At<PathBuf>,
        chain: &Path,
        keys: &[PathBuf],
    ) -> Result<Option<Certificate>, ()> {
        let Some(chain) = self.part(at, chain)? else { return Ok(None) };
        if !has(&chain, "-----BEGIN CERTIFICATE-----") {
            // A key, a request for a certificate, or parameters.
            return Ok(None);
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
        Ok(Some(Certificate { chain, key, ocsp: None, acme: None }))
    }

    /// Returns a file of a certificate; none if it does not exist.
    fn part(&self, at: &At<PathBuf>, path: &Path) -> Result<Option<Material>, ()> {
        let at = At { value: path.to_path_buf(), span: at.span.clone() };
        match self.surroundings.file(path) {
            Err(Unreadable { is_missing: true, .. }) => Ok(None),
            found => self.material(&at, found).map(Some).ok_or(()),
        }
    }
}

fn has(material: &Material, text: &str) -> bool {
    material.bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
