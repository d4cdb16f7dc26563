//! `/api/v1/fleet`: the fleet of balancers as this one sees it.

use admin_api::fleet::Fleet;
use axum::extract::State;

use super::{Api, Indented};
use crate::context::Context;

pub(super) async fn fleet(State(api): Api) -> Indented<Option<Fleet>> {
    Indented(of(&api))
}

pub(super) fn of(api: &Context) -> Option<Fleet> {
    api.sources.fleet.as_ref().and_then(|fleet| fleet())
}
