//! The page at `/`: a list of the API's paths.

use axum::http::header;
use axum::response::{IntoResponse, Response};

const PAGE: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Weir</title>
<h1>Weir</h1>
<p><a href="/ui/">The dashboard</a>
<dl>
<dt><a href="/metrics">GET /metrics</a>
<dd>All metrics, for Prometheus
<dt><a href="/api/v1/openapi.json">GET /api/v1/openapi.json</a>
<dd>This API as an OpenAPI document
<dt><a href="/api/v1/status">GET /api/v1/status</a>
<dd>The process: readiness, version, workers, listeners, connections
<dt><a href="/api/v1/services">GET /api/v1/services</a>
<dd>All services with their servers: health, zone, requests in flight, queue
<dt>GET /api/v1/services/<var>service</var>
<dd>One service
<dt>GET /api/v1/routes/explain?url=<var>URL</var>
<dd>Which route a request would take, why, and which server it would get
<dt><a href="/api/v1/routes/published">GET /api/v1/routes/published</a>
<dd>The routes that services publish in Consul's tags
<dt><a href="/api/v1/fleet">GET /api/v1/fleet</a>
<dd>The fleet of balancers that this one belongs to
<dt><a href="/api/v1/requests">GET /api/v1/requests</a>
<dd>Requests in flight, the oldest first
<dt><a href="/api/v1/requests/ended">GET /api/v1/requests/ended</a>
<dd>Examples of ended requests: failed, slowest, with a recorded decision
<dt><a href="/api/v1/traffic">GET /api/v1/traffic</a>
<dd>Rates and latencies of the last ten seconds, minute and hour
<dt><a href="/api/v1/history">GET /api/v1/history</a>
<dd>The recent past, by the second, by ten seconds, by the minute
<dt><a href="/api/v1/changes">GET /api/v1/changes</a>
<dd>What has changed: servers, configurations, maintenance, findings
<dt><a href="/api/v1/stream">GET /api/v1/stream</a>
<dd>Answers of other paths, sent again as they change
<dt><a href="/api/v1/causes">GET /api/v1/causes</a>
<dd>The causes with which requests end: meaning, remedy, count
<dt>GET /api/v1/causes/<var>cause</var>
<dd>One cause
<dt><a href="/api/v1/checks">GET /api/v1/checks</a>
<dd>The probe plan: which probes run, how often, for which services, and their results
<dt><a href="/api/v1/findings">GET /api/v1/findings</a>
<dd>What the doctor found on this host and in its traffic
<dt><a href="/api/v1/configuration">GET /api/v1/configuration</a>
<dd>The configuration in force, with every default filled in
<dt><a href="/api/v1/reloads">GET /api/v1/reloads</a>
<dd>The last reloads and their results
<dt>POST /api/v1/services/<var>service</var>/servers/<var>server</var>/state
<dd>Sets a server's state: <code>{"state": "ready"}</code>, <code>"drain"</code> or <code>"maintenance"</code>
<dt>POST /api/v1/services/<var>service</var>/servers/<var>server</var>/weight
<dd>Sets a server's weight: <code>{"weight": 5}</code>; <code>null</code> for the configured one
<dt>POST /api/v1/services/<var>service</var>/maintenance
<dd>Switches a service's maintenance: <code>{"on": true, "retry_after_ms": 600000}</code>
<dt>POST /api/v1/routes/<var>route</var>/maintenance
<dd>Switches a route's maintenance
<dt>POST /api/v1/reload
<dd>Reloads the configuration file
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
