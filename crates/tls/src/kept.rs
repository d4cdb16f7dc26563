//! The TLS configurations in use: each is built once, and stays the same object as long as nothing
//! about it changes, so that sessions are resumed across connections and reloads.

use std::sync::Arc;

use model::{HttpVersion, Listener};

use crate::Mistake;

/// The ALPN names of HTTP (RFC 9113 section 3.2), in order of preference.
const BOTH: &[&[u8]] = &[b"h2", b"http/1.1", b"http/1.0"];
const HTTP1: &[&[u8]] = &[b"http/1.1", b"http/1.0"];
/// Servers are offered one version.
const TO_SERVERS_HTTP1: &[&[u8]] = &[b"http/1.1"];
const TO_SERVERS_HTTP2: &[&[u8]] = &[b"h2"];

/// Returns the ALPN protocols of the connections of a listener that carry HTTP. Others have none: Weir does not
/// know their protocol.
pub fn listener_alpn(listener: &Listener) -> &'static [&'static [u8]] {
    match listener.http2 {
        Some(_) => BOTH,
        None => HTTP1,
    }
}

/// Returns the ALPN protocols offered to a service's servers.
pub fn service_alpn(http: HttpVersion) -> &'static [&'static [u8]] {
    match http {
        HttpVersion::Http11 => TO_SERVERS_HTTP1,
        HttpVersion::Http2 => TO_SERVERS_HTTP2,
    }
}

/// Configurations (`C`) by what they were built from (`K`): few, so they are searched linearly.
#[derive(Debug)]
pub struct Kept<K, C> {
    entries: Vec<(K, Arc<C>)>,
}

impl<K, C> Default for Kept<K, C> {
    fn default() -> Kept<K, C> {
        Kept { entries: Vec::new() }
    }
}

impl<K: PartialEq, C> Kept<K, C> {
    /// Returns the configuration of `key`, building it if there is none.
    ///
    /// # Errors
    /// Those of `make`; nothing is kept then.
    pub fn get(
        &mut self,
        key: K,
        make: impl FnOnce(&K) -> Result<Arc<C>, Mistake>,
    ) -> Result<Arc<C>, Mistake> {
        if let Some((_, config)) = self.entries.iter().find(|(of, _)| *of == key) {
            return Ok(Arc::clone(config));
        }
        let config = make(&key)?;
        self.entries.push((key, Arc::clone(&config)));
        Ok(config)
    }

    /// Drops configurations no longer in use.
    pub fn forget_unused(&mut self) {
        self.entries.retain(|(_, config)| Arc::strong_count(config) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;

    #[test]
    fn a_configuration_is_the_same_object_while_in_use() {
        let mut kept: Kept<u8, String> = Kept::default();
        let first = kept.get(1, |key| Ok(Arc::new(key.to_string()))).unwrap();
        let again = kept.get(1, |_| panic!("it is there")).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        drop(again);
        kept.forget_unused();
        assert!(Arc::ptr_eq(&first, &kept.get(1, |_| panic!("it is held")).unwrap()));
        drop(first);
        kept.forget_unused();
        assert_eq!(*kept.get(1, |_| Ok(Arc::new("new".to_owned()))).unwrap(), "new");
    }

    #[test]
    fn what_could_not_be_made_is_tried_again() {
        let mut kept: Kept<u8, String> = Kept::default();
        let mistake = Mistake::new(Part::Ca, "no");
        assert_eq!(kept.get(1, |_| Err(mistake.clone())), Err(mistake));
        assert_eq!(*kept.get(1, |_| Ok(Arc::new("now".to_owned()))).unwrap(), "now");
    }
}
