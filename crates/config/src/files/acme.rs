//! Settings of `[acme]` with the files that they name, and the certificates that listeners ask for.

use std::path::PathBuf;
use std::sync::Arc;

use model::{Acme, AcmeCertificate, Certificate, ExternalAccount, Material};

use super::Reader;
use crate::raw::{Document, RawAcme, RawExternalAccount};

/// The largest file with an HMAC key; one has some 90 characters.
const HMAC_KEY_FILE_MAX_BYTES: u64 = 4096;
/// Below the state directory.
const FOLDER: &str = "acme";

impl Reader<'_> {
    /// Returns the settings, without the certificates; `None` also after a mistake, which is
    /// reported.
    pub(super) fn acme(&self, raw: &RawAcme, document: &Document) -> Option<Acme> {
        let ca = match &raw.ca {
            Some(at) => self.authorities(at),
            None => self.system_authorities(&raw.span),
        };
        let external_account = raw.external_account.as_ref();
        let external_account = external_account.map(|raw| self.external_account(raw));
        Some(Acme {
            directory: Arc::clone(&raw.directory),
            ca: ca?,
            contacts: raw.contacts.clone(),
            terms_agreed: true,
            external_account: match external_account {
                Some(external) => Some(external?),
                None => None,
            },
            certificates: Vec::new(),
            challenge: raw.challenge.value,
            profile: raw.profile.clone(),
            renewal: raw.renewal,
            state: raw.state_directory.clone().unwrap_or_else(|| {
                // Without a directory a relative path, below the one that the environment names.
                document.state_directory.clone().unwrap_or_default().join(FOLDER)
            }),
        })
    }

    fn external_account(&self, raw: &RawExternalAccount) -> Option<ExternalAccount> {
        let at = raw.hmac_key_file.as_ref()?;
        let found = self.surroundings.secret(&self.path(at), HMAC_KEY_FILE_MAX_BYTES);
        let hmac_key = self.material(at, found)?;
        Some(ExternalAccount { key_id: raw.key_id.clone()?, hmac_key })
    }
}

/// Returns a certificate that has not been obtained.
pub(super) fn certificate(names: &[String]) -> Certificate {
    let nothing = || Material { path: PathBuf::from(FOLDER), bytes: Arc::default() };
    let acme = Some(Arc::new(AcmeCertificate { names: names.to_vec() }));
    Certificate { chain: nothing(), key: nothing(), ocsp: None, acme }
}
