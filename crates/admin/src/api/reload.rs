//! `/api/v1/reload`, `/api/v1/reloads` and `/api/v1/upgrade`. The process that runs the API does the work
//! and writes the receipts.

use admin_api::receipt::{Reload, Reloads, Upgrade};
use axum::extract::State;
use axum::http::StatusCode;

use super::{Api, Indented, ask, not_available};
use crate::context::Context;
use crate::problem::Problem;
use crate::{ReloadError, Source};

pub(super) async fn reload(State(api): Api) -> Result<Indented<Reload>, Problem> {
    let source = api.sources.reload.as_ref().ok_or_else(|| not_available("a reload"))?;
    // One at a time, so that each receipt is about its own reload.
    let _reloading = api.reloading.lock().await;
    match ask(source).await? {
        Ok(receipt) => Ok(Indented(receipt)),
        Err(ReloadError::Refused(why)) => {
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "configuration_refused", why))
        }
        Err(ReloadError::Failed(why)) => {
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "reload_failed", why))
        }
    }
}

pub(super) async fn reloads(State(api): Api) -> Result<Indented<Reloads>, Problem> {
    Ok(Indented(ask(reloads_of(&api)?).await?))
}

pub(super) fn reloads_of(api: &Context) -> Result<&Source<Reloads>, Problem> {
    api.sources.reloads.as_ref().ok_or_else(|| not_available("a reload"))
}

pub(super) async fn upgrade(State(api): Api) -> Result<Indented<Upgrade>, Problem> {
    let source = api.sources.upgrade.as_ref().ok_or_else(|| not_available("an upgrade"))?;
    ask(source).await?.map(Indented).map_err(|error| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "upgrade_failed", error.to_string())
    })
}
