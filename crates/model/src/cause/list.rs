//! Every cause, with its page.
//!
//! A variant's comment is the page: a paragraph on what happened, whose first line is a separate
//! sentence (responses to clients contain it, so it must not reveal internals), one on why it
//! usually happens, one on what to do. `weir explain` and docs/causes.md are made from it.
//!
//! Names start from those of RFC 9209 section 2.3 and are more specific where those are too general.
//! A released name never changes. Each is for a situation that really occurs.

causes! {
    /// The response was forwarded completely, or a tunnel was closed by its ends.
    /// Its status may still be an error: then the server sent it, and Weir only forwarded it.
    ///
    /// This is how nearly every exchange should end.
    ///
    /// No action is needed. For a 5xx from the server, look into the log of the server that the
    /// access log names.
    Completed = "completed", None, 0;
    /// A route answered with a redirect.
    ///
    /// The route that matched has a `redirect`, so the request went to no server.
    ///
    /// No action is needed. If the redirect is unexpected, `weir check` prints the routes in the
    /// order in which they match.
    Redirected = "redirected", None, 0;
    /// A route answered with a configured response.
    ///
    /// The route that matched has a `respond`, so the request went to no server. For `respond =
    /// "ready"` the access log's `detail` says why the answer was 503.
    ///
    /// No action is needed. If the response is unexpected, `weir check` prints the routes in the order
    /// in which they match.
    Responded = "responded", None, 0;
    /// Maintenance is under way, and the request was not forwarded.
    /// The service or the route is in maintenance, so Weir answered in place of the servers. Requests
    /// that were already at a server were finished.
    ///
    /// An operator switched maintenance on, with `weir maintenance`, the admin API or the
    /// configuration's `maintenance`.
    ///
    /// No action is needed while the work goes on. `weir status` lists what is in maintenance and who
    /// said so; `weir maintenance SERVICE --off` ends it.
    Maintenance = "maintenance", None, 503;
    /// No data moved through a tunnel for the idle timeout.
    /// Both connections were closed. A tunnel is a connection of a tcp listener, or one that was
    /// upgraded, such as a WebSocket.
    ///
    /// The two ends had no data to send, or one of them disappeared without closing, as phones and
    /// laptops do.
    ///
    /// No action is needed if the client reconnects automatically. Otherwise raise the service's
    /// `timeouts.tunnel` above the longest normal idle time, or let the application send pings more
    /// often than that.
    TunnelIdleTimeout = "tunnel_idle_timeout", None, 0;

    /// The request does not follow the rules of HTTP/1.1 (RFC 9112).
    /// If Weir forwarded it, the server might interpret it differently, which makes request smuggling
    /// possible. The access log's `detail` says which rule it broke.
    ///
    /// Most often a custom client, a scanner, or TLS sent to a plain-text port.
    ///
    /// Fix the client; this check cannot be disabled. If `detail` mentions TLS, clients use https://
    /// on an http listener.
    HttpRequestError = "http_request_error", Client, 400;
    /// The request target is longer than 8 kB.
    ///
    /// Usually a form sent with GET, a query that lists many ids, or a redirect loop that
    /// extends the query each time.
    ///
    /// Send such data in the body of a POST. The limit is fixed.
    UriTooLong = "uri_too_long", Client, 414;
    /// The request head is larger, or has more fields, than is accepted here.
    ///
    /// Usually accumulated cookies, or a token that has grown: it then affects the same users
    /// repeatedly and no others.
    ///
    /// Find out which field grew; clearing the site's cookies helps the user at once. If such heads
    /// are intended, raise the listener's `head_max`; the limit of 128 fields is fixed.
    HttpRequestHeadTooLarge = "http_request_head_too_large", Client, 431;
    /// The request body is larger than is accepted here.
    ///
    /// An upload beyond the listener's `body_max`. With a Content-Length it is rejected before it goes
    /// to a server, without one as soon as the limit is exceeded.
    ///
    /// Raise the listener's `body_max` if such uploads are intended. Servers often have their own
    /// limit; their response appears here as `completed` with status 413.
    HttpRequestBodyTooLarge = "http_request_body_too_large", Client, 413;
    /// The request needs a feature that is not supported here.
    /// It uses a transfer coding other than chunked, the method CONNECT, or a method of more than
    /// 32 bytes; the access log's `detail` says which.
    ///
    /// CONNECT comes from scanners that look for open proxies. Other transfer codings (gzip,
    /// deflate) are rare and mostly hostile.
    ///
    /// Ignore scanners. A client that compresses its request body must declare it in
    /// Content-Encoding, not in Transfer-Encoding.
    HttpRequestNotImplemented = "http_request_not_implemented", Client, 501;
    /// The request names an HTTP version other than 1.0 and 1.1.
    ///
    /// A client that uses HTTP/2 without negotiating it, a scanner, or a typo in a manual
    /// test.
    ///
    /// Let the client use HTTP/1.1 towards this listener.
    HttpVersionNotSupported = "http_version_not_supported", Client, 505;
    /// The request expects something other than 100-continue.
    ///
    /// RFC 9110 defines only this expectation; anything else is an error of the client.
    ///
    /// Remove the Expect field from the client's requests.
    HttpExpectationFailed = "http_expectation_failed", Client, 417;
    /// The request head was not complete in time.
    /// Its first byte had arrived, but its last did not within the listener's `timeouts.head`. Over
    /// HTTP/2, this ends the connection without a status: a frame or a header block was not complete,
    /// and other requests on the connection end with `http2_protocol_error`.
    ///
    /// A very slow or broken link, or an attacker that holds connections open (slowloris).
    ///
    /// A few are normal. Many at once from few addresses are an attack, which this timeout contains;
    /// lower `timeouts.head` or the listener's `connections_max` if the load is too high.
    HttpRequestTimeout = "http_request_timeout", Client, 408;
    /// The client stopped sending its request body.
    /// No part of it arrived for the listener's `timeouts.body`.
    ///
    /// A link that broke during an upload, a client that announces more than it sends, or a slow
    /// POST attack. Meanwhile the request held a slot at a server.
    ///
    /// If it is always the same client, check its Content-Length. Raise `timeouts.body` for
    /// clients that pause while they send.
    HttpRequestBodyTimeout = "http_request_body_timeout", Client, 408;
    /// The request body arrived too slowly.
    /// The server closed its connection or did not answer while it was the client's turn to send the
    /// next part of the body, or the service's `timeouts.total` passed, or the client sent less than
    /// 500 bytes per second for five seconds while others waited for its slot (`in_flight_max`). The
    /// server is not at fault, and passive health does not count it.
    ///
    /// A slow or broken link during an upload, or a slow POST attack. Unlike with
    /// `http_request_body_timeout`, each pause was within the listener's `timeouts.body`.
    ///
    /// Compare `request_bytes` and `total_ms` in the access log with what the client's link can
    /// carry. If such uploads are intended, raise the servers' own timeout for request bodies and the
    /// service's `timeouts.total`.
    HttpRequestBodySlow = "http_request_body_slow", Client, 408;
    /// The client closed its connection before its request was complete.
    /// If a server had received the beginning, it saw an aborted request, not a complete one. No
    /// response was sent.
    ///
    /// An upload that was cancelled, a client that crashed, or one that announces a longer body
    /// than it sends.
    ///
    /// Occasional cases from many clients need no action. If it is always the same client, compare its Content-Length with `request_bytes` in the access log.
    HttpRequestIncomplete = "http_request_incomplete", Client, 0;
    /// The deadline that the client set for its call passed.
    /// The client sent it as `grpc-timeout`; it covers the whole call, queue and retries included.
    ///
    /// A deadline that is shorter than the call takes, often one that a chain of calls has used up
    /// before this one began.
    ///
    /// Compare `total_ms` in the access log with the deadlines that clients set. If they are
    /// reasonable, find out where the time goes: `queue_ms`, `connect_ms` and `first_byte_ms` show it.
    ClientDeadlineExceeded = "client_deadline_exceeded", Client, 408;
    /// The client closed its connection before its response was complete.
    /// Weir abandoned the request at the server.
    ///
    /// An impatient user, or a client, proxy or load balancer in front of Weir with a shorter timeout
    /// than the response needs.
    ///
    /// Compare `total_ms` in the access log: the same round number each time is a timeout. Then
    /// either make the server faster, or let the client wait longer than the service's
    /// `timeouts.response`.
    ClientClosed = "client_closed", Client, 0;
    /// The client reset its connection before its exchange was complete.
    /// Unlike with `client_closed` it used a TCP reset, which discards data in transit.
    ///
    /// A process that was killed or a browser tab that was closed during a transfer; also a
    /// firewall or NAT in front of Weir that has lost the connection's state.
    ///
    /// Check whether it is one client or one network. Resets after a constant idle time point to the
    /// idle timeout of a firewall in between.
    ClientReset = "client_reset", Client, 0;
    /// The client and the listener could not agree on TLS.
    ///
    /// A scanner, a plain-text client on a TLS port, one too old for the listener's
    /// `version_min`, one that does not trust the certificate, or one without the certificate that
    /// the listener requires. `detail` says which.
    ///
    /// Ignore scanners. `openssl s_client -connect` shows what a client sees.
    ClientTlsError = "client_tls_error", Client, 0;
    /// A connection did not begin with the required PROXY protocol header.
    ///
    /// The balancer in front of Weir does not send it, or a client bypasses that balancer from an
    /// address in `proxy_protocol`. `detail` says what is wrong with it.
    ///
    /// Enable the PROXY protocol there, or remove its address from the listener's
    /// `proxy_protocol`.
    ProxyProtocolError = "proxy_protocol_error", Client, 0;
    /// The client caused excessive load over HTTP/2; its connection was closed.
    /// It opened and reset too many requests, or sent too many frames that are of no use. The
    /// detail in the access log names them.
    ///
    /// An attack (such as rapid reset, CVE-2023-44487), rarely a broken client.
    ///
    /// Find the client's address in the access log, and block it in front of Weir if it continues.
    EnhanceYourCalm = "enhance_your_calm", Client, 0;
    /// The client violated the HTTP/2 protocol, and Weir ended the request or the connection.
    /// The detail in the access log names the rule. A malformed request ends alone. If Weir ended
    /// the connection (GOAWAY), its other requests have this cause too, although nothing was wrong
    /// with them.
    ///
    /// A field name in upper case, a control character in a field, or a frame where it is not
    /// allowed: a custom client, a proxy that builds fields by hand, or a scanner.
    ///
    /// Find the client by its address and fix it. Requests of other users on the same connection
    /// are affected only if a proxy in front of Weir shares one connection between them.
    Http2ProtocolError = "http2_protocol_error", Client, 0;
    /// The client exceeded the limit of concurrent HTTP/2 streams.
    /// The stream was refused with `REFUSED_STREAM` before it was read, so the client may send the
    /// request again.
    ///
    /// A client that does not wait for the server's settings, or that ignores the limit in them.
    ///
    /// Rare cases need no action: clients retry such requests automatically. Otherwise raise
    /// `streams_max` of the listener's `http2`.
    Http2StreamsExceeded = "http2_streams_exceeded", Client, 0;
    /// The client stopped reading its response.
    /// No part of it could be sent for the listener's `timeouts.body`; Weir aborted the connection.
    ///
    /// A link that broke, a player or download that was paused, or a slow read attack.
    ///
    /// Raise the listener's `timeouts.body` if clients pause for good reasons. A few are normal.
    ClientWriteTimeout = "client_write_timeout", Client, 0;
    /// The method TRACE is not allowed here.
    /// The response's `Allow` lists the allowed methods. A server answers TRACE with the request as
    /// it received it, including fields that proxies added and cookies that scripts cannot read.
    ///
    /// A scanner, or a person who looks for proxies on the path.
    ///
    /// Usually no action is needed. To let TRACE through to a service, add a route with `method = "TRACE"`.
    HttpMethodNotAllowed = "http_method_not_allowed", Client, 405;
    /// A route denies this request.
    /// The request went to no server.
    ///
    /// The route that matched, or a branch of its `split`, has a `deny`, which also chooses the status
    /// (403 unless it says otherwise). Or it requires claims that the request's token does not have, or
    /// its authentication server has answered with 403; then the access log's `detail` says so.
    ///
    /// No action is needed if the denial is intended. Otherwise `weir check` prints the routes in the order in
    /// which they match: a more specific one wins.
    HttpRequestDenied = "http_request_denied", Client, 403;
    /// The request does not prove who sends it.
    /// The response's WWW-Authenticate says what the route requires, or the response is that of the
    /// authentication server, such as a redirect to a login page. The access log's `detail` says what
    /// was wrong; the client is not told whether a user exists.
    ///
    /// A browser's first request, before it asks for a password or is sent to a login page; an expired
    /// token or session; a wrong password; or someone who guesses passwords.
    ///
    /// A 401 before each successful login is normal. If valid clients are refused, the access log's
    /// `detail` says why: a wrong password, an unknown user, an expired token, a key that the file of keys
    /// does not have because it is older than the issuer's keys. Against guessing, give the route a
    /// `rate_limit` by client, which comes first.
    Unauthenticated = "unauthenticated", Client, 401;
    /// The host of the request does not match the server name of its connection.
    /// The listener has `hosts`, and the host of the request belongs to another entry than the server
    /// name (SNI) that the client sent in its TLS handshake. The access log has the `host`, and the server
    /// name in the part on TLS.
    ///
    /// Browsers use one HTTP/2 connection for all hosts that its certificate covers, and send the
    /// request again over another one after this status. Other clients send a Host that does not belong
    /// to the name that they connected to, or no server name at all.
    ///
    /// No action is needed for browsers. If browsers receive many of these, use certificates that cover
    /// the hosts of one entry only. If the hosts may share connections, list them as one entry, for
    /// instance with a wildcard.
    MisdirectedRequest = "misdirected_request", Client, 421;
    /// The client exceeded the rate limit.
    /// The response's Retry-After says when the next request will pass.
    ///
    /// A client in a loop, a crawler, or many users behind one address (an office, a mobile
    /// network) counted as one.
    ///
    /// If legitimate users are affected, raise `requests` or `burst` of the route's `rate_limit`, or count
    /// by a header that tells users apart (`by`).
    RateLimited = "rate_limited", Client, 429;

    /// Too many passwords wait for verification.
    /// The password was not verified. Verifications take long by design, so they run on few threads, and few
    /// may wait: 64, eight of them for one client, each for 10 s. Requests with the same credentials count
    /// as one.
    ///
    /// Someone guesses passwords, many users log in at once from one address (an office, a proxy that is not
    /// in `trusted`) or after a restart, or the hashes cost more than the machine can bear.
    ///
    /// The access log's `detail` says which bound was reached. Against guessing, give the route a
    /// `rate_limit` by client. If all are legitimate, lower the cost of the hashes (`htpasswd -B -C 8`), or
    /// name the proxy in `trusted`.
    AuthenticationOverloaded = "authentication_overloaded", Balancer, 503;
    /// The authentication server, or the issuer of the keys, gave no usable answer.
    /// The request was refused, since nothing is known about its sender. It went to no server of the
    /// route's own service.
    ///
    /// The servers of the service that `forward` names are down, overloaded or in maintenance; they answered
    /// with a 5xx, or with more than 64 kB; or with a status that no decision has, such as 404 or 405: then
    /// `path` is probably wrong. Or the key set at `keys_url` has not been fetched since the start.
    ///
    /// The access log's `detail` says what happened, in the words of other causes (`connection_refused`,
    /// `queue_full`). `weir status` and the metrics of that service show its servers. Correct
    /// `path` if the detail says that a status was unexpected. Why keys cannot be fetched is in the
    /// program's log.
    AuthenticationUnavailable = "authentication_unavailable", Server, 503;
    /// The authentication server took too long.
    /// The request was refused, since nothing is known about its sender. It went to no server of the
    /// route's own service.
    ///
    /// The servers of the service that `forward` names are slow, or all are busy and the request waited in
    /// their queue.
    ///
    /// The access log's `detail` says which timeout passed, and `auth_ms` how long the request
    /// waited. If such times are normal for the authentication server, raise `timeout` of `forward`.
    AuthenticationTimeout = "authentication_timeout", Server, 504;
    /// The request has passed this balancer five times already: there is a routing loop.
    /// Weir adds its own id to `CDN-Loop` (RFC 8586) whenever it forwards a request, and counts how
    /// often the id is there when a request arrives. Up to five passes are allowed, since a request
    /// may legitimately come back through another proxy.
    ///
    /// A service whose server is one of Weir's own listeners, directly or behind another proxy, DNS
    /// name or load balancer that points back here.
    ///
    /// Follow the route and the service that the access log names, and change the server's address.
    /// `weir check` warns when a server's address is one of the file's own listeners.
    ProxyLoopDetected = "proxy_loop_detected", Configuration, 508;
    /// No route matches the request.
    ///
    /// A host name that points here but is in no route, or not in the listener's `hosts`, a path outside
    /// of all routes, or a scanner that tries addresses.
    ///
    /// Look at `host` and `path` in the access log, and at the routes as `weir check` prints them.
    /// A route with a `service` and neither `host` nor `path` matches all remaining requests.
    DestinationNotFound = "destination_not_found", Configuration, 404;
    /// What the route forwards to does not exist or is not valid.
    /// The request was for a route of Kubernetes whose backend is not valid, or for the share of such a
    /// backend among several. On a TCP or TLS listener the connection was closed.
    ///
    /// The Service does not exist or has no such port, no ReferenceGrant allows the reference to another
    /// namespace, the kind of the backend is not supported, or its BackendTLSPolicy is not valid.
    ///
    /// The access log's `route` names the route, or its `listener` that of the connection. The `ResolvedRefs`
    /// condition in the status of the route says what is wrong.
    ProxyConfigurationError = "proxy_configuration_error", Configuration, 500;
    /// No server is ready to take the request.
    /// All servers of the service are down, ejected, drained or in maintenance, or the source that it takes its
    /// servers from lists none (`discover`).
    ///
    /// A deployment that broke every server at once, a check whose path or expected status no
    /// longer fits the application, or a network that is cut off.
    ///
    /// `/api/v1/services` at the admin address shows the state of each server, and the log why it went
    /// down. If the servers answer a manual request, the `check` is wrong: fix its `path` or
    /// `expect`. With `when_all_down = "try-all"` Weir sends requests anyway.
    DestinationUnavailable = "destination_unavailable", Server, 503;
    /// No address is known for any server of the service.
    /// DNS has returned no address since startup. Once it has returned one, Weir keeps it if DNS fails
    /// later.
    ///
    /// A typo in `address`, a record that has not been published yet, a resolver that does
    /// not know the internal zone, or none that answers: the log says which.
    ///
    /// Try the name with `dig` on this machine, against the resolver that Weir uses: `resolver` in
    /// the configuration, or /etc/resolv.conf. Weir repeats the query until it gets an answer.
    DnsError = "dns_error", Configuration, 502;
    /// Every server is at its limit, and the queue is full.
    /// The response's status is the service's `when_full`, and its Retry-After says when a slot is
    /// likely to be free. A service that may be scaled to zero (`scaling`) may also have no server yet.
    ///
    /// More load than the servers can handle, or servers that have become slow: in flight = rate ×
    /// time, so twice the response time occupies twice the slots.
    ///
    /// First check whether response times rose; then fix what is slow. If the servers have CPU to
    /// spare, raise `in_flight_max`; if not, add servers. A longer queue (`queue.length_max`) only
    /// helps against short bursts.
    QueueFull = "queue_full", Server, 429;
    /// Every server stayed at its limit for the maximum queue time.
    /// The request had waited in the queue for the service's `queue.wait_max`. The response's status
    /// is the service's `when_full`.
    ///
    /// More load than the servers can handle for longer than a burst, or servers that have become
    /// slow.
    ///
    /// The same as for `queue_full`: fix what is slow, raise `in_flight_max` if the servers have
    /// CPU to spare, or add servers. A longer `queue.wait_max` makes users wait longer and rarely
    /// serves more of them.
    QueueWaitExceeded = "queue_wait_exceeded", Server, 429;

    /// The server refused the connection.
    /// Its host is up and answers, but nothing listens on that port; or there is no Unix socket at that
    /// path, or Weir's user may not write to it.
    ///
    /// The process is not running, is still starting, or listens on another port or on 127.0.0.1
    /// only. A firewall that rejects looks the same.
    ///
    /// On the server, `ss -ltn` shows what listens; for a Unix socket, `ls -l` shows who may connect. Start the process, or fix the server's
    /// `address`. With a `check` such a server is taken out before requests reach it.
    ConnectionRefused = "connection_refused", Server, 502;
    /// The connection to the server was not established in time.
    /// It took longer than the service's `timeouts.connect`, which passed before the first SYN
    /// retransmission, so it is unknown whether the server would have answered.
    ///
    /// A `timeouts.connect` that is shorter than the round trip. At 1 s or less it may also be any
    /// reason for `connect_syn_unanswered`.
    ///
    /// Measure the round-trip time to the server, and set `timeouts.connect` to several times that.
    /// Above 1 s, Weir distinguishes this cause from `connect_syn_unanswered`.
    ConnectionTimeout = "connection_timeout", Network, 504;
    /// The listen queue of a Unix socket stayed full, so that the server could not be reached.
    /// There was no room in it within the service's `timeouts.connect`, though Weir tried again at least
    /// every 50 ms. Over TCP, this looks like `connect_syn_unanswered`.
    ///
    /// The process no longer accepts, since all of its threads are busy or it hangs, or it listens with
    /// a backlog that is smaller than a burst.
    ///
    /// `ss -lx` shows the queue (Recv-Q) and its size (Send-Q). Raise the server's backlog, and
    /// net.core.somaxconn if that is less; or set `in_flight_max`, so that requests wait in Weir.
    ListenQueueFull = "listen_queue_full", Server, 504;
    /// The server did not answer the connection attempt.
    /// The first packet (SYN) was retransmitted at least once, and no answer came within the service's
    /// `timeouts.connect`.
    ///
    /// The host is down, a firewall drops packets silently, the route is broken, or the server's
    /// listen queue is full: its process no longer accepts, or the burst was larger than its
    /// backlog.
    ///
    /// If other connections to the same port work at the same time, look at the listen queue on the
    /// server: `ss -ltn` (Recv-Q against Send-Q) and `nstat -az TcpExtListenOverflows`. If none
    /// works, try from this machine with `nc -vz`, then look at the firewall.
    ConnectSynUnanswered = "connect_syn_unanswered", Network, 504;
    /// The network reports that the server cannot be reached.
    /// There is no route to its address, or a router or this machine's packet filter rejected it.
    ///
    /// A network interface that is down, a missing route, a host that does not answer on its own
    /// network (no ARP reply), or an IPv6 address where there is no IPv6.
    ///
    /// `ip route get` with the server's address, on this machine, shows the route. Then fix the
    /// route, or the server's `address`.
    DestinationIpUnroutable = "destination_ip_unroutable", Network, 502;
    /// The balancer could not open one more connection.
    /// The machine that Weir runs on has no local port towards the server, no file descriptor or no
    /// memory left for one.
    ///
    /// Most often local ports: some 28,000 connections to one server address, most of them in
    /// `TIME_WAIT` because connections are not kept. Or a limit on open files below what
    /// `connections_max` needs.
    ///
    /// `ss -s` counts sockets and `TIME_WAIT`. Let servers keep connections alive, and raise
    /// `idle_connections_max`; widen `net.ipv4.ip_local_port_range`; at startup Weir warns if the
    /// limit on open files is too low.
    ConnectionLimitReached = "connection_limit_reached", Balancer, 503;
    /// The server and the balancer could not agree on TLS.
    ///
    /// A server that uses plain text on that port, one too old for TLS 1.2, or one that closed the
    /// connection.
    ///
    /// Try `openssl s_client -connect` with its address. Fix its `address` or the service's `tls`.
    TlsProtocolError = "tls_protocol_error", Server, 502;
    /// The TLS certificate of the server could not be verified.
    ///
    /// It has expired, is for another name, or is from a certificate authority that is unknown here.
    ///
    /// The log says what is wrong with it. Renew it, or fix the service's `tls.name` or `tls.ca`.
    TlsCertificateError = "tls_certificate_error", Server, 502;
    /// The server refused TLS with an alert.
    ///
    /// It requires a certificate, or does not know the requested server name.
    ///
    /// The log says which alert. Fix the service's `tls.name` or `tls.certificate`.
    TlsAlertReceived = "tls_alert_received", Server, 502;
    /// The server refused an HTTP/2 stream before it began to process it.
    ///
    /// It is stopping, or has reached its limit of requests on the connection. It sends
    /// `REFUSED_STREAM` or GOAWAY, and the request may be sent again, whatever its method.
    ///
    /// Rare cases need no action. Otherwise compare the server's limit on concurrent streams with the
    /// service's `in_flight_max`.
    HttpStreamRefused = "http_stream_refused", Server, 502;
    /// The server reset the HTTP/2 stream before its response was complete.
    /// The connection stays open. The detail is the error code that the server sent (RFC 9113 section
    /// 7), such as `CANCEL` or `INTERNAL_ERROR`.
    ///
    /// An application that gave up, for example because the deadline of a gRPC call had passed, or a
    /// server at a limit of its own (`ENHANCE_YOUR_CALM`).
    ///
    /// Look into the server's log at that second. gRPC clients receive the status that belongs to the
    /// code.
    HttpStreamReset = "http_stream_reset", Server, 502;
    /// The server closed the connection before its response began.
    /// It closed normally (FIN), on a new connection or in the middle of a response head.
    ///
    /// A worker process that died or was stopped by its master (a timeout or a memory limit there),
    /// or a server that closes without a response when it is overloaded or rejects a request.
    ///
    /// Look into the server's log at that second. Weir retried the request elsewhere if that was
    /// safe. It does not retry one that is not idempotent (POST), which the server may have acted on.
    ConnectionTerminated = "connection_terminated", Server, 502;
    /// The server reset the connection before its response was complete.
    /// It, or something between, sent a TCP reset (RST), which discards data in transit.
    ///
    /// A process that was killed or crashed, one that closed while part of the request was still
    /// unread (an upload it did not want), or a firewall that has lost the connection's state.
    ///
    /// Look into the server's log and for its exit at that second. If it happens to uploads only,
    /// the server rejects them without reading: look at its limit on body size.
    ConnectionReset = "connection_reset", Server, 502;
    /// The server stopped responding: data sent to it was no longer acknowledged.
    /// The connection had been established; then no packet was acknowledged for longer than the
    /// service's `timeouts.response` (5 s at least), or the network reported that the host is unreachable.
    ///
    /// The host lost power or its network, a virtual machine was paused, or a firewall was changed
    /// while connections were open.
    ///
    /// Check whether other servers of the same zone are affected: then it is the network. A `check`
    /// takes such a server out within `interval` × `fall`, so that few requests reach it.
    ConnectionLost = "connection_lost", Network, 504;
    /// The server closed a kept connection just as the request was sent on it.
    /// The request could not be sent again: it is not idempotent (POST), so if the server had begun to
    /// act on it, it would have been executed twice.
    ///
    /// A server whose keep-alive timeout is shorter than the time that Weir keeps an idle
    /// connection, or one that closes after every response without announcing it.
    ///
    /// Set the service's `timeouts.keep_alive` a second below the server's own (Node.js and uvicorn
    /// 5 s, gunicorn 2 s), or raise the server's. `idle_connections_max = 0` uses a new
    /// connection for every request.
    ServerClosedIdleConnection = "server_closed_idle_connection", Server, 502;
    /// The server stopped reading the request body.
    /// No part of it could be sent for the service's `timeouts.idle`.
    ///
    /// A process that hangs or waits for a disk or a database while its receive buffer is full, or
    /// one with too few workers to read what it has accepted.
    ///
    /// Look at the server's CPU, threads and disk at that time. An `in_flight_max` that matches its
    /// workers prevents it from accepting more requests than it reads.
    ConnectionWriteTimeout = "connection_write_timeout", Server, 504;
    /// The server stopped sending in the middle of its response.
    /// The head had arrived and was forwarded; then nothing arrived for the service's `timeouts.idle`.
    /// Weir aborted the client's connection, so that it cannot mistake the response for complete.
    ///
    /// A process that hangs or waits for a database while it streams, or a stream of events that is
    /// silent for longer than the timeout.
    ///
    /// Raise the service's `timeouts.idle` above the longest normal pause, or let the
    /// server send something in between (a comment line in server-sent events). Otherwise look into
    /// its log.
    ConnectionReadTimeout = "connection_read_timeout", Server, 504;
    /// The server did not begin its response in time.
    /// The request had been sent; its response head was not complete after the service's
    /// `timeouts.response`.
    ///
    /// A slow query, a lock, an exhausted worker pool, a call to another system that hangs.
    ///
    /// If it is always the same `path`, that work is slow: fix it, or raise `timeouts.response` in a
    /// separate service with a route for that path. If it is everything on one server, that server
    /// is unhealthy; `in_flight_max` keeps requests from piling up in it.
    HttpResponseTimeout = "http_response_timeout", Server, 504;
    /// The exchange exceeded its total time limit.
    /// `timeouts.total` of the route or the service passed, in whatever stage the request was.
    ///
    /// Several waits that are each within their own limit add up: the queue, a first attempt that
    /// failed, a slow response. The access log's times say which it was.
    ///
    /// Raise `timeouts.total`, or omit it for services with long downloads: it includes the body.
    TotalTimeout = "total_timeout", Server, 504;
    /// The server did not begin its response within the time for an attempt.
    /// The request had been sent; its response head was not complete after the route's
    /// `timeouts.attempt`, and Weir could not make another attempt.
    ///
    /// The server is slow with this request, or hangs. There is no further attempt if the request is not
    /// idempotent, if the service's `retries` are used up, or after an informational response.
    ///
    /// If the work takes longer than that, raise the route's `timeouts.attempt`. If the same request
    /// is quick on another server, raise `max` of the service's `retries`, and look into the slow one.
    AttemptTimeout = "attempt_timeout", Server, 504;
    /// The server was marked down while the request waited for its response.
    /// Weir abandoned the request there, and could not send it to another server.
    ///
    /// The server's health check failed while requests were waiting for it. Weir retries each of them
    /// elsewhere if that is safe; this one had no attempt or no server left.
    ///
    /// Find out why the server went down. Raise `max` of the service's `retries` if there are
    /// other servers to try.
    ServerMarkedDown = "server_marked_down", Server, 502;
    /// The server did not send a valid HTTP/1.1 response.
    /// The access log's `detail` says which rule it broke.
    ///
    /// The port uses another protocol (TLS, HTTP/2 without negotiation, gRPC, a database), or the
    /// application writes headers with line breaks or both Content-Length and Transfer-Encoding.
    ///
    /// Look at the raw bytes with `curl -v --http1.1`, from this machine to the server. Point
    /// `address` to the plain HTTP port, or fix the application.
    HttpProtocolError = "http_protocol_error", Server, 502;
    /// The head of the response is larger, or has more fields, than is accepted.
    /// The limits for a server are 16 kB and 128 fields.
    ///
    /// Usually a large number of Set-Cookie fields, a whole session in a cookie, or debugging headers
    /// that were left on.
    ///
    /// Find out which header grew, with `curl -sD- -o /dev/null` from this machine to the server,
    /// and make it smaller: most browsers and proxies have limits like this one.
    HttpResponseHeadTooLarge = "http_response_header_section_size", Server, 502;
    /// The trailer section of the response is larger than is accepted.
    /// Weir aborted the forwarded response, so that the client cannot mistake it for complete.
    ///
    /// Rare: an application that writes a whole log, checksum list or stack trace into the trailer
    /// fields after a chunked body.
    ///
    /// Make the trailers smaller, or send them as part of the body.
    HttpResponseTrailerTooLarge = "http_response_trailer_section_size", Server, 502;
    /// The chunks of the response are malformed, or its transfer coding is unknown.
    /// Weir aborted the forwarded response, so that the client cannot mistake it for complete.
    ///
    /// An application or a middleware that writes chunks by hand, one that writes to the socket
    /// bypassing its framework, or compression done as a transfer coding.
    ///
    /// Look at the raw bytes with `curl -v --raw`, from this machine to the server. Let the
    /// framework do the framing, and compress with Content-Encoding.
    HttpResponseTransferCoding = "http_response_transfer_coding", Server, 502;
    /// The response ended before it was complete.
    /// The server closed before its Content-Length or its last chunk. Weir aborted the client's
    /// connection, so that it cannot mistake the response for complete.
    ///
    /// A worker that crashed or was stopped during a response (timeout, memory limit, restart), or an
    /// application whose Content-Length is larger than its body.
    ///
    /// Look into the server's log at that second. If it is always the same `path` and the same
    /// `response_bytes`, the Content-Length is wrong.
    HttpResponseIncomplete = "http_response_incomplete", Server, 502;
    /// The server did not upgrade the connection as requested.
    /// It answered 101 to a request without an upgrade, or switched to a protocol that was not
    /// offered.
    ///
    /// A WebSocket library that answers 101 to plain requests, or a proxy in front of the server
    /// that dropped the Upgrade field.
    ///
    /// Compare with a request directly to the server. Look for another proxy between Weir and the
    /// application.
    HttpUpgradeFailed = "http_upgrade_failed", Server, 502;
    /// The server answered with a status that is retried.
    /// It is the cause of an attempt that was followed by another, never of the whole exchange.
    ///
    /// A server that is overloaded, starts or stops answers 503; a proxy in front of it answers 502 or
    /// 504. The statuses are those in `retries.status` of the route or the service.
    ///
    /// Look at `failed_attempts` of the access log for the servers that answer so. If all of them do,
    /// retries add to their load: take the status out of `retries.status`.
    HttpResponseStatus = "http_response_status", Server, 0;

    /// The balancer is stopping, and the time for finishing requests is over.
    ///
    /// A restart or a shutdown while requests or tunnels were still running after `drain_max`.
    ///
    /// Raise `drain_max` above the longest request that must survive a restart, and the service
    /// manager's own limit (`TimeoutStopSec` in systemd) above that.
    ShuttingDown = "shutting_down", Balancer, 503;
    /// The security settings of the listener changed, and the time for its tunnels is over.
    /// A reload turned TLS on or off, or changed its `version_min`, `ciphers`,
    /// `client_certificates` or `proxy_protocol`. Connections that were accepted before end after
    /// their current request; tunnels (connections of a tcp listener, or upgraded ones such as a
    /// WebSocket) end `drain_max` after the reload.
    ///
    /// A reload. Its receipt in the log names what changed.
    ///
    /// No action is needed if clients reconnect automatically. Raise `drain_max` to give tunnels more time.
    ListenerChanged = "listener_changed", Balancer, 0;
    /// The balancer failed: a bug.
    ///
    /// An internal invariant of Weir does not hold.
    ///
    /// Please report it with the access log line, the program's own log around it and the output of
    /// `weir --version`.
    ProxyInternalError = "proxy_internal_error", Balancer, 500;
}
