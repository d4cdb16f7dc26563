//! The API's own description, an `OpenAPI` 3.1 document: `openapi.json`, which a test generates from the
//! types of the answers (`openapi`).

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::Api;

const DOCUMENT: &str = include_str!("openapi.json");

/// Placeholder in the file for the program's version.
const VERSION: &str = "VERSION";

pub(super) async fn openapi(State(api): Api) -> Response {
    let text = DOCUMENT.replacen(VERSION, api.version, 1);
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::api::{ROUTES, openapi};

    /// `UPDATE_EXPECT=1 cargo test -p weir-admin` writes the file.
    #[test]
    fn the_file_describes_the_types() {
        let mut generated = serde_json::to_string_pretty(&openapi::document(VERSION)).unwrap();
        generated.push('\n');
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api/openapi.json");
            std::fs::write(file, generated).unwrap();
        } else {
            assert!(
                generated == DOCUMENT,
                "openapi.json is not up to date: UPDATE_EXPECT=1 cargo test -p weir-admin writes it"
            );
        }
    }

    #[test]
    fn the_document_and_the_router_know_the_same_routes() {
        let document: Value = serde_json::from_str(DOCUMENT).unwrap();
        let documented: BTreeSet<(String, String)> = document["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().unwrap().keys();
                methods.map(|method| (path.clone(), method.clone()))
            })
            .collect();
        let routed: BTreeSet<(String, String)> = ROUTES
            .iter()
            .map(|(path, method, _)| ((*path).to_owned(), (*method).to_owned()))
            .collect();
        assert_eq!(documented, routed);
        assert_eq!(routed.len(), ROUTES.len(), "none stands twice");
    }

    #[test]
    fn the_version_stands_in_it_once() {
        assert_eq!(DOCUMENT.matches(VERSION).count(), 1);
    }
}
