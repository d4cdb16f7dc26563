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
<dt><a href="/api/v1/openapi.json">GET /api/v1/openapi.json</a>
<dd>All of this described for programs, as an OpenAPI document
<dt><a href="/api/v1/status">GET /api/v1/status</a>
<dd>Whether this process takes work; its version, workers and listeners
<dt><a href="/api/v1/services">GET /api/v1/services</a>
<dd>Every service and its servers: health, zone, requests in flight, queue
<dt>GET /api/v1/services/<var>service</var>
<dd>One of them
<dt><a href="/api/v1/requests">GET /api/v1/requests</a>
<dd>Requests under way, the slowest first
<dt><a href="/api/v1/causes">GET /api/v1/causes</a>
<dd>Why requests ended as they did: what each cause means, and how often it was
<dt>GET /api/v1/causes/<var>cause</var>
<dd>One of them
<dt><a href="/api/v1/checks">GET /api/v1/checks</a>
<dd>The probe plan: what is probed how often, for whom, and how it went
<dt><a href="/api/v1/findings">GET /api/v1/findings</a>
<dd>What the doctor found on this host and about its traffic
<dt><a href="/api/v1/configuration">GET /api/v1/configuration</a>
<dd>The configuration in force, defaults filled in
<dt><a href="/api/v1/reloads">GET /api/v1/reloads</a>
<dd>The last reloads, and what came of them
<dt>POST /api/v1/services/<var>service</var>/servers/<var>server</var>/state
<dd>Puts a server aside or back: <code>{"state": "ready"}</code>, <code>"drain"</code> or <code>"maintenance"</code>
<dt>POST /api/v1/services/<var>service</var>/servers/<var>server</var>/weight
<dd>Gives a server another weight: <code>{"weight": 5}</code>; <code>null</code> for the configured one
<dt>POST /api/v1/reload
<dd>Loads the configuration file anew
<dt>POST /api/v1/upgrade
<dd>Lets a new process take over
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
