//! Reads the routes of all services in an answer.

use std::collections::HashSet;

use config::quote;
use model::{HostPattern, PublishedRoute, RouteTagFormat};

use super::catalog::{self, Tag, Tags};
use super::route::{
    Published, ROUTES_MAX, RefusedTags, SERVICE_ROUTES_MAX, SERVICE_TAGS_MAX, TAG_BYTES_MAX, order,
};
use super::target::Target;
use super::{fabio, traefik, weir};

/// Reads the answer of `GET /v1/catalog/services`, whose length the caller bounds: the routes for `allowed` hosts that
/// tags in one of `formats` publish. Equal tags give equal routes, in whatever order they are listed.
///
/// Tags that are about routes in no such format are ignored. One that is, but is not valid or is for another host, is
/// refused. `*.apps.example` allows every host below it, and `*.apps.example` and `*.x.apps.example` themselves.
///
/// There are at most [`ROUTES_MAX`] routes. Those that services had `before` come first, then the others by service.
///
/// If several tags of a service publish the same host and path, the first one counts: by format in the order of
/// [`RouteTagFormat`], then by text. If several services do, all have it: see [`settle`](super::settle()).
///
/// # Errors
/// The answer is not of this format. One line, bounded and escaped.
pub fn published(
    body: &[u8],
    formats: &[RouteTagFormat],
    allowed: &[HostPattern],
    before: &[PublishedRoute],
) -> Result<Published, String> {
    let had: HashSet<_> = before.iter().map(|route| (&*route.service, route.place())).collect();
    let mut published = Published::default();
    // So many services that sort first cannot displace what others have.
    let mut new = Vec::new();
    for (name, tags) in catalog::read(body, formats)? {
        let refused = &mut published.refused;
        let mut service = Service { name: &name, allowed, routes: Vec::new(), refused };
        service.read(&tags);
        for route in service.routes {
            let is_known = had.contains(&(&*route.service, route.place()));
            let room = if is_known { &mut published.routes } else { &mut new };
            if room.len() < ROUTES_MAX {
                room.push(route);
            } else {
                published.refused.refuse(&route.service, &route.tag, &too_many());
            }
        }
        published.listed.insert(name);
    }
    // Those of services that are no longer listed may be held.
    let absent = before.iter().filter(|route| !published.listed.contains(&*route.service)).count();
    let room = ROUTES_MAX.saturating_sub(published.routes.len() + absent);
    let excess = new.split_off(new.len().min(room));
    for route in excess {
        published.refused.refuse(&route.service, &route.tag, &too_many());
    }
    published.routes.append(&mut new);
    published.routes.sort_by_cached_key(|route| (route.service.clone(), order(route)));
    Ok(published)
}

fn too_many() -> String {
    format!("all services together have at most {ROUTES_MAX} routes")
}

/// A service whose tags are being read.
struct Service<'a> {
    name: &'a str,
    allowed: &'a [HostPattern],
    /// In the order of the tags.
    routes: Vec<PublishedRoute>,
    refused: &'a mut RefusedTags,
}

impl Service<'_> {
    fn read(&mut self, tags: &Tags) {
        let (too_long, kept): (Vec<_>, Vec<_>) =
            tags.kept.iter().partition(|tag| tag.is_too_long());
        for Tag { text, .. } in &too_long {
            let why = format!("the tag is longer than {TAG_BYTES_MAX} bytes");
            self.refused.refuse(self.name, text, &why);
        }
        for Tag { format, text } in &kept {
            let after = |prefix: &str| text.trim_start().strip_prefix(prefix).unwrap_or_default();
            match format {
                RouteTagFormat::Weir => self.add(*format, text, weir::read(after(weir::PREFIX))),
                RouteTagFormat::Fabio => self.add(*format, text, fabio::read(after(fabio::PREFIX))),
                // Several tags together state a route.
                RouteTagFormat::Traefik => {}
            }
        }
        // A part of a router may be in a tag that is not read.
        let more = tags.excess_example.as_ref();
        let incomplete = match more {
            Some(_) => Some(format!(
                "the service has more than {SERVICE_TAGS_MAX} tags about routes, so its routers may be incomplete"
            )),
            None => too_long.iter().any(|tag| tag.format == RouteTagFormat::Traefik).then(|| {
                "another tag of the service is too long, so its routers may be incomplete"
                    .to_owned()
            }),
        };
        let of_traefik = kept.iter().filter(|tag| tag.format == RouteTagFormat::Traefik);
        let of_traefik = of_traefik.map(|tag| tag.text.as_str());
        for (tag, target) in traefik::read(self.name, of_traefik, incomplete.as_deref()) {
            self.add(RouteTagFormat::Traefik, tag, target);
        }
        if let Some(Tag { text, .. }) = more {
            let why = format!("a service has at most {SERVICE_TAGS_MAX} tags about routes");
            self.refused.refuse_all(tags.excess, self.name, text, &why);
        }
    }

    /// Adds the route that a tag states, or refuses the tag.
    fn add(&mut self, format: RouteTagFormat, tag: &str, target: Result<Target, String>) {
        if let Err(why) = target.and_then(|target| self.add_target(format, tag, target)) {
            self.refused.refuse(self.name, tag, &why);
        }
    }

    fn add_target(
        &mut self,
        format: RouteTagFormat,
        tag: &str,
        target: Target,
    ) -> Result<(), String> {
        let Target { host, path, strip, listeners } = target;
        if !self.allowed.iter().any(|allowed| allowed.covers_all_of(&host)) {
            return Err(format!("host `{host}` is not among the allowed ones"));
        }
        if let Some(other) = self.routes.iter().find(|other| other.place() == (&host, &path)) {
            return if (&other.strip, &other.listeners) == (&strip, &listeners) {
                Ok(())
            } else {
                Err(format!("{} has other settings for the same host and path", quote(&other.tag)))
            };
        }
        if self.routes.len() >= SERVICE_ROUTES_MAX {
            return Err(format!("a service has at most {SERVICE_ROUTES_MAX} routes"));
        }
        let (service, tag) = (self.name.into(), tag.into());
        self.routes.push(PublishedRoute { service, host, path, strip, listeners, format, tag });
        Ok(())
    }
}
