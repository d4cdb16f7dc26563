//! The configuration with the routes that services publish in Consul's tags. The files are not read again when those
//! change: unfinished work in them must not come into force.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use control::load::Input;
use model::{PublishedRoute, Snapshot};

use crate::not_admitted::NotAdmitted;

/// How often the configuration is checked again without services whose routes do not go with it.
const ATTEMPTS_MAX: usize = 4;

/// A configuration to which routes are added.
pub(super) struct Tagged {
    /// Its files.
    input: Input,
    /// Without published routes.
    file: Arc<Snapshot>,
    /// The routes that were added last; `None`: they could not be applied.
    used: Option<Arc<Vec<PublishedRoute>>>,
}

impl Tagged {
    /// Returns `None` if services may not publish routes.
    pub(super) fn of(input: Input, file: &Arc<Snapshot>) -> Option<Tagged> {
        file.registries.consul.as_ref()?.routes.as_ref()?;
        Some(Tagged { input, file: Arc::clone(file), used: Some(Arc::default()) })
    }

    /// Returns the configuration with `routes`, and those that the file does not admit, each with the reason. If a
    /// service's routes are not valid with the defaults of the file, only they are left out.
    ///
    /// # Errors
    /// The configuration is not valid with the routes, and it is unclear with which.
    pub(super) fn with(
        &mut self,
        routes: Arc<Vec<PublishedRoute>>,
    ) -> Result<(Arc<Snapshot>, NotAdmitted), String> {
        self.used = Some(Arc::clone(&routes));
        let (mut additions, refused) = config::additions(&self.file, &routes);
        let mut refused: NotAdmitted =
            refused.into_iter().map(|(route, why)| (route.clone(), why)).collect();
        for _ in 0..ATTEMPTS_MAX {
            if additions.is_empty() {
                return Ok((Arc::clone(&self.file), refused));
            }
            let at_fault: HashMap<_, _> = match self.input.with(&additions) {
                Ok(snapshot) => return Ok((snapshot, refused)),
                Err(at_fault) => at_fault.into_iter().collect(),
            };
            if at_fault.is_empty() {
                break;
            }
            additions.retain(|addition| !at_fault.contains_key(&addition.name));
            let known: HashSet<_> = refused.iter().map(|(route, _)| route.clone()).collect();
            for route in routes.iter().filter(|route| !known.contains(*route)) {
                if let Some(why) = at_fault.get(&config::addition_of(&route.service)) {
                    refused.push((route.clone(), why.clone()));
                }
            }
        }
        Err("the configuration is not valid with the published routes".to_owned())
    }

    /// Has the routes added again, since they could not be applied.
    pub(super) fn is_not_applied(&mut self) {
        self.used = None;
    }

    /// Returns whether `routes` are others than those that were added last.
    pub(super) fn is_behind(&self, routes: &Arc<Vec<PublishedRoute>>) -> bool {
        self.used.as_ref().is_none_or(|used| !Arc::ptr_eq(used, routes) && used != routes)
    }
}
