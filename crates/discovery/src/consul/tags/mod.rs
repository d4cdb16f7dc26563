//! Routes that services publish in their tags: the answer of `GET /v1/catalog/services`
//! (<https://developer.hashicorp.com/consul/api-docs/catalog#list-services>), which has for each service the union
//! of its instances' tags.
//!
//! | format | example |
//! |---|---|
//! | `weir` | `weir.route=web.example/api strip` |
//! | `fabio` | `urlprefix-web.example/api strip=/api` |
//! | `traefik` | ``traefik.http.routers.web.rule=Host(`web.example`) && PathPrefix(`/api`)`` |
//!
//! [`published()`] reads an answer. [`settle()`] decides which of several services has a host and path, over time.
//!
//! Every client that may register a service may publish routes. So only allowed hosts count, hosts and paths obey the rules
//! of `[[route]]`, and a tag that is not understood completely is refused: a part of it, such as the middleware that
//! asks for a password, could be what protects the service. Nothing stops a service from publishing a longer path
//! below that of another: services that share an allowed host trust each other.

mod catalog;
mod fabio;
mod kept;
mod published;
mod route;
mod rule;
mod saved;
mod settle;
mod target;
mod traefik;
mod weir;

pub use kept::{Kept, KeptRoute, KeptState};
pub use published::published;
pub use route::{
    Published, ROUTES_MAX, RefusedTags, SERVICE_ROUTES_MAX, SERVICE_TAGS_MAX, TAG_BYTES_MAX,
};
pub use saved::SavedRoute;
pub use settle::settle;

#[cfg(test)]
mod tests;
