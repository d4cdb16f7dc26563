//! The certificate authorities that a measurement trusts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Material, ServiceTls};
use tls::rustls::ClientConfig;

/// How TLS is spoken to servers: believing the authorities in `cacert`, without it the system's,
/// and anybody if `insecure`. `None`: this system has no authorities, which is a mistake only where
/// TLS is spoken.
///
/// # Errors
/// A line that names the file that cannot be read, or that holds no authorities.
pub(super) fn client(
    cacert: Option<&Path>,
    insecure: bool,
    alpn: &[&[u8]],
) -> Result<Option<Arc<ClientConfig>>, String> {
    let ca = match cacert {
        Some(path) => {
            let read = fs::read(path);
            let bytes = read.map_err(|error| format!("{}: {error}", path.display()))?.into();
            Material { path: path.to_owned(), bytes }
        }
        None if insecure => Material { path: PathBuf::new(), bytes: [].into() },
        None => {
            let found = config::SYSTEM_AUTHORITIES.iter().map(PathBuf::from).find_map(|path| {
                let bytes = fs::read(&path).ok()?.into();
                Some(Material { path, bytes })
            });
            match found {
                Some(found) => found,
                None => return Ok(None),
            }
        }
    };
    let path = ca.path.clone();
    let tls =
        ServiceTls { name: None, names: Vec::new(), verify: !insecure, ca, certificate: None };
    let config = tls::client(&tls, alpn);
    config.map(Some).map_err(|mistake| format!("{}: {mistake}", path.display()))
}
