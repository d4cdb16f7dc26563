//! The contents of Secrets and ConfigMaps → certificates and authorities.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::pem;
use crate::ir::{Authorities, Certificate};
use crate::objects::Key;
use crate::objects::core::{ConfigMap, Secret};

/// Decodes the certificate in a Secret.
///
/// # Errors
///
/// The rest of a sentence that begins with the Secret.
pub fn certificate(key: &Key, secret: &Secret) -> Result<Certificate, String> {
    let chain = value(secret, "tls.crt")?;
    pem::certificates(&chain).map_err(|text| format!("is invalid: tls.crt {text}"))?;
    let private_key = value(secret, "tls.key")?;
    pem::private_key(&private_key).map_err(|text| format!("is invalid: tls.key {text}"))?;
    Ok(Certificate { secret: key.clone(), chain, private_key })
}

/// Decodes the authorities in a ConfigMap.
///
/// # Errors
///
/// The rest of a sentence that begins with the ConfigMap.
pub fn authorities(key: &Key, map: &ConfigMap) -> Result<Authorities, String> {
    if let Some(why) = &map.unknown {
        return Err(why.to_string());
    }
    let text = map.data.get("ca.crt").ok_or("has no key ca.crt")?;
    pem::certificates(text.as_bytes()).map_err(|text| format!("is invalid: ca.crt {text}"))?;
    Ok(Authorities { source: key.clone(), pem: text.as_bytes().into() })
}

/// Returns a decoded value of a Secret.
///
/// # Errors
///
/// The rest of a sentence that begins with the Secret.
pub fn value(secret: &Secret, name: &str) -> Result<Arc<[u8]>, String> {
    if let Some(why) = &secret.unknown {
        return Err(why.to_string());
    }
    let text = secret.data.get(name).ok_or_else(|| format!("has no key {name}"))?;
    match STANDARD.decode(text) {
        Ok(bytes) => Ok(bytes.into()),
        Err(_) => Err(format!("is invalid: {name} is not base64")),
    }
}
