//! What the files of `[fleet]` provide.

use std::sync::Arc;

use model::{Discover, FleetTls};

use super::Reader;
use crate::raw::{RawFleet, RawFleetTls};

/// What the files of `[fleet]` provide. `None` also after a mistake, which is reported.
pub(crate) struct FleetFiles {
    pub(crate) discover: Option<Arc<Discover>>,
    pub(crate) tls: Option<FleetTls>,
}

impl Reader<'_> {
    pub(super) fn fleet(&self, raw: Option<&RawFleet>) -> FleetFiles {
        FleetFiles {
            discover: raw.and_then(|raw| self.discover(raw.discover.as_ref()?).map(Arc::new)),
            tls: raw.and_then(|raw| self.fleet_tls(raw.tls.as_ref()?)),
        }
    }

    /// Returns TLS settings with which members accept each other.
    fn fleet_tls(&self, raw: &RawFleetTls) -> Option<FleetTls> {
        let certificate = self.certificate(raw.certificate.as_ref()?);
        let ca = self.authorities(raw.ca.as_ref()?);
        let chain = raw.certificate.as_ref().and_then(|it| it.chain.clone());
        let tls =
            FleetTls { certificate: certificate?.certificate, ca: ca?, name: raw.name.clone() };
        match tls::member(&tls) {
            Ok(_) => Some(tls),
            Err(mistake) => {
                self.report_mistake(mistake, chain.as_ref()?);
                None
            }
        }
    }
}
