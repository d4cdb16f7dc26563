//! The account at the authority: loaded, or created and stored (RFC 8555 section 7.3).

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use instant_acme::{Account, ExternalAccountKey, NewAccount};
use model::{Acme, ExternalAccount};

use crate::failure::{Failed, Kind};
use crate::http::Http;
use crate::store::{Lock, State, StoredAccount};

/// Maximum size of an HMAC key's file. RFC 2104 uses no more than a block of 64 bytes.
const HMAC_FILE_MAX_BYTES: usize = 4096;

/// Returns the account; it is created if none is stored. Notes in `ignored` what is damaged.
pub(crate) async fn open(
    settings: &Acme,
    state: &State,
    lock: &Lock,
    http: &Http,
    ignored: &mut Vec<String>,
) -> Result<Account, Failed> {
    let stored = match state.account() {
        Ok(stored) => stored,
        Err(error) => {
            ignored.push(error.to_string());
            state.set_account_aside(lock)?;
            None
        }
    };
    let contacts = contacts(settings);
    let Some(stored) = stored else {
        return create(settings, state, lock, http).await;
    };
    let builder = Account::builder_with_http(Box::new(http.clone()));
    let failed = |error| Failed::of("cannot use the ACME directory", &error);
    let known_contacts = stored.contacts;
    let account = builder.from_credentials(stored.credentials).await.map_err(failed)?;
    if known_contacts != contacts {
        let uris: Vec<&str> = contacts.iter().map(String::as_str).collect();
        let failed = |error| Failed::of("cannot change the account's contacts", &error);
        account.update_contacts(&uris).await.map_err(failed)?;
        if let Some(stored) = state.account()? {
            state.put_account(lock, &StoredAccount { contacts, ..stored })?;
        }
    }
    Ok(account)
}

/// Reads the account of a stored certificate for questions that change nothing. `None`: there is
/// none, or it is damaged.
pub(crate) async fn known(state: &State, http: &Http) -> Result<Option<Account>, Failed> {
    let Some(stored) = state.account().ok().flatten() else {
        return Ok(None);
    };
    let builder = Account::builder_with_http(Box::new(http.clone()));
    let opened = builder.from_credentials(stored.credentials).await;
    opened.map(Some).map_err(|error| Failed::of("cannot use the ACME directory", &error))
}

async fn create(
    settings: &Acme,
    state: &State,
    lock: &Lock,
    http: &Http,
) -> Result<Account, Failed> {
    let contacts = contacts(settings);
    let uris: Vec<&str> = contacts.iter().map(String::as_str).collect();
    let wanted = NewAccount {
        contact: &uris,
        terms_of_service_agreed: settings.terms_agreed,
        only_return_existing: false,
    };
    let external = settings.external_account.as_ref().map(external_key).transpose();
    let external = external.map_err(|why| Failed::new(Kind::Local, why))?;
    let builder = Account::builder_with_http(Box::new(http.clone()));
    let created = builder.create(&wanted, settings.directory.to_string(), external.as_ref()).await;
    let (account, credentials) =
        created.map_err(|error| Failed::of("cannot create an ACME account", &error))?;
    state.put_account(lock, &StoredAccount { credentials, contacts })?;
    tracing::info!(account = account.id(), "created an ACME account");
    Ok(account)
}

fn contacts(settings: &Acme) -> Vec<String> {
    settings.contacts.iter().map(|address| format!("mailto:{address}")).collect()
}

/// Decodes the HMAC key of an external account.
///
/// # Errors
/// One line, without the key.
pub(crate) fn external_key(external: &ExternalAccount) -> Result<ExternalAccountKey, String> {
    let wrong = |what: &str| {
        let file = external.hmac_key.path.display();
        format!("the HMAC key in {file} {what}; copy it as the authority gave it (base64url)")
    };
    if external.hmac_key.bytes.len() > HMAC_FILE_MAX_BYTES {
        return Err(wrong("is too long"));
    }
    let text = str::from_utf8(&external.hmac_key.bytes).map_err(|_| wrong("is not text"))?.trim();
    let engine = if text.ends_with('=') { URL_SAFE } else { URL_SAFE_NO_PAD };
    let key = engine.decode(text).map_err(|_| wrong("is not base64url"))?;
    if key.is_empty() {
        return Err(wrong("is empty"));
    }
    Ok(ExternalAccountKey::new(external.key_id.clone(), &key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_hmac_key_is_refused_without_being_shown() {
        let of = |bytes: &[u8]| {
            let hmac_key = model::Material { path: "eab.key".into(), bytes: bytes.into() };
            external_key(&ExternalAccount { key_id: "kid-1".into(), hmac_key }).map(drop)
        };
        for good in [&b"c2VjcmV0"[..], b"c2VjcmV0\n", b"c2VjcmV0cw==", b"zWN-_Q"] {
            of(good).unwrap();
        }
        for bad in [&b"sec+ret/"[..], b"", b"\n", b"\xff\xfe", b"SECRET SECRET", &[b'a'; 5000]] {
            let why = of(bad).unwrap_err();
            assert!(why.contains("eab.key") && !why.contains("SECRET"), "{why}");
        }
    }
}
