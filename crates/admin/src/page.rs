//! The page at `/`: what there is to ask for.

use axum::http::header;
use axum::response::{IntoResponse, Response};

const PAGE: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Weir</title>
<h1>Weir</h1>
<dl>
<dt><a href="/metrics">GET /metrics</a>
<dd>Everything counted, for Prometheus
<dt><a href="/api/v1/status">GET /api/v1/status</a>
<dd>Whether this process takes work; its version, workers and listeners
<dt><a href="/api/v1/services">GET /api/v1/services</a>
<dd>Every service and its servers: health, zone, requests in flight, queue
<dt>GET /api/v1/services/<var>service</var>
<dd>One of them
<dt><a href="/api/v1/checks">GET /api/v1/checks</a>
<dd>The probe plan: what is probed how often, and for whom
<dt><a href="/api/v1/configuration">GET /api/v1/configuration</a>
<dd>The configuration in force, defaults filled in
<dt>POST /api/v1/services/<var>service</var>/servers/<var>address</var>/state
<dd>Puts a server aside or back: <code>{"state": "ready"}</code>, <code>"drain"</code> or <code>"maintenance"</code>
</dl>
</html>
"#;

pub(crate) async fn index() -> Response {
    let fields = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    ];
    (fields, PAGE).into_response()
}
