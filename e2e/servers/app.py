#!/usr/bin/env python3
"""A threaded HTTP/1.1 server with keep-alive that counts its own concurrent requests.

What a request can ask for, as query parameters (all optional):
  work_ms=N     work this long (sleeping) before the answer; default: --work-ms
  size=N        a body of N bytes instead of the echo
  status=N      answer with this status
  chunked=1     send the body chunked;  trailer=1: with a trailer field X-Sum
  drip_ms=N     send the body in ten pieces with this pause between them
  abort=N       promise --size bytes more than the N that are sent, then reset the connection
  close=1       answer with Connection: close;  until_close=1: without any length
  early=1       send 103 Early Hints first
  reset=1       reset the connection without any answer

The answer is an echo as JSON: server, method, target, fields, body_bytes, body_sha256, trailers.
An `Upgrade` request is answered with 101, and bytes are sent back until the client closes.

/status is the health check: counted as a probe, not as a request.
/-/stats, /-/reset and /-/set?key=value are for the test; they are not counted at all.

A request is in flight from its complete head until just before the last byte of its answer is
written: after that byte the balancer may rightly send the next one.
"""

import argparse
import hashlib
import json
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

words = argparse.ArgumentParser()
words.add_argument("--name", default="app")
words.add_argument("--address", required=True)
words.add_argument("--work-ms", type=float, default=0)
words.add_argument("--size", type=int, default=0, help="of every body; 0: the echo")
words.add_argument("--status-path", default="/status")
words.add_argument("--version", default="", help="stated in X-App-Version")
words.add_argument("--idle-s", type=float, default=None, help="close kept connections after this")
words = words.parse_args()


class Counts:
    """What this server saw. The integral of requests in flight over time is its busy time."""

    def __init__(self):
        self.lock = threading.Lock()
        self.in_flight = 0
        self.reset()

    def reset(self):
        with self.lock:
            self.began = self.changed = time.monotonic()
            self.busy_s = 0.0
            self.in_flight_max = self.in_flight
            self.requests = self.probes = self.connections = 0
            self.probe_times = []
            self.probe_hosts = {}

    def change(self, by):
        with self.lock:
            now = time.monotonic()
            self.busy_s += self.in_flight * (now - self.changed)
            self.changed = now
            self.in_flight += by
            self.in_flight_max = max(self.in_flight_max, self.in_flight)
            self.requests += by > 0

    def probe(self, host):
        with self.lock:
            self.probes += 1
            self.probe_times.append(round(time.monotonic() - self.began, 3))
            self.probe_hosts[host] = self.probe_hosts.get(host, 0) + 1

    def report(self):
        self.change(0)
        with self.lock:
            return {
                "name": words.name,
                "in_flight": self.in_flight,
                "in_flight_max": self.in_flight_max,
                "requests": self.requests,
                "probes": self.probes,
                "probe_times_s": self.probe_times,
                "probe_hosts": self.probe_hosts,
                "connections": self.connections,
                "busy_s": self.busy_s,
                "window_s": time.monotonic() - self.began,
            }


counts = Counts()
settings = {"work_ms": words.work_ms, "status": 0, "health": 200, "health_ms": 0}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "app"
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = words.idle_s

    def setup(self):
        super().setup()
        with counts.lock:
            counts.connections += 1

    def log_message(self, *_):
        pass

    def handle_expect_100(self):
        # What is written is buffered, and the client waits for this before it sends more.
        went_on = super().handle_expect_100()
        self.wfile.flush()
        return went_on

    def any_method(self):
        target = urlsplit(self.path)
        if target.path.startswith("/-/"):
            return self.control(target)
        if target.path == words.status_path:
            counts.probe(self.headers.get("Host", ""))
            time.sleep(settings["health_ms"] / 1000)
            return self.answer(int(settings["health"]), b"ok\n")
        counts.change(+1)
        self.left = False
        try:
            self.work(dict(parse_qsl(target.query)))
        finally:
            self.leave()

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = any_method

    def leave(self):
        if not self.left:
            self.left = True
            counts.change(-1)

    def control(self, target):
        if target.path == "/-/stats":
            return self.answer(200, json.dumps(counts.report()).encode(), "application/json")
        if target.path == "/-/reset":
            counts.reset()
        elif target.path == "/-/set":
            settings.update({key: float(value) for key, value in parse_qsl(target.query)})
        self.answer(200, b"ok\n")

    def work(self, asked):
        if self.headers.get("Upgrade"):
            return self.upgrade()
        body, trailers = self.read_body()
        time.sleep(float(asked.get("work_ms", settings["work_ms"])) / 1000)
        if asked.get("reset"):
            return self.reset()
        if asked.get("early"):
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n")
        status = int(asked.get("status", settings["status"])) or 200
        size = int(asked.get("size", words.size))
        kind = "text/plain"
        if size:
            content = b"x" * size
        else:
            kind = "application/json"
            content = json.dumps({
                "server": words.name,
                "method": self.command,
                "target": self.path,
                "version": self.request_version,
                "peer": self.client_address[0],
                "fields": self.headers.items(),
                "body_bytes": len(body),
                "body_sha256": hashlib.sha256(body).hexdigest(),
                "trailers": trailers,
            }).encode()
        self.send(status, content, kind, asked)

    def send(self, status, content, kind, asked):
        self.send_response(status)
        self.send_header("X-Served-By", words.name)
        if words.version:
            self.send_header("X-App-Version", words.version)
        self.send_header("Content-Type", kind)
        chunked = bool(asked.get("chunked") or asked.get("trailer"))
        abort = int(asked.get("abort", 0))
        if asked.get("close") or asked.get("until_close"):
            self.send_header("Connection", "close")
            self.close_connection = True
        if abort:
            content = b"x" * abort
            self.send_header("Content-Length", str(abort + 1000))
        elif chunked:
            self.send_header("Transfer-Encoding", "chunked")
            if asked.get("trailer"):
                self.send_header("Trailer", "X-Sum")
        elif status not in (204, 304) and not asked.get("until_close"):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "HEAD" or status in (204, 304):
            content = b""
            chunked = False
        pause = float(asked.get("drip_ms", 0)) / 1000
        pieces = 10 if pause else 1
        step = max(1, -(-len(content) // pieces))
        for at in range(0, len(content), step):
            piece = content[at:at + step]
            if chunked:
                piece = b"%x\r\n%s\r\n" % (len(piece), piece)
            if at + step >= len(content) and not chunked:
                self.leave()
            self.wfile.write(piece)
            if pause:
                self.wfile.flush()
                time.sleep(pause)
        self.leave()
        if chunked:
            self.wfile.write(b"0\r\n")
            if asked.get("trailer"):
                self.wfile.write(b"X-Sum: %d\r\n" % len(content))
            self.wfile.write(b"\r\n")
        self.wfile.flush()
        if abort:
            self.reset()

    def reset(self):
        # Lets what was sent arrive first: a reset discards what is still on its way.
        time.sleep(0.05)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.connection.close()
        self.close_connection = True

    def answer(self, status, content, kind="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.wfile.flush()

    def read_body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0))), []
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        trailers = []
        while (line := self.rfile.readline().strip()):
            trailers.append(line.decode())
        return body, trailers

    def upgrade(self):
        self.close_connection = True
        self.wfile.write(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n"
            b"X-Served-By: %s\r\n\r\n"
            % (self.headers["Upgrade"].encode(), words.name.encode())
        )
        self.wfile.flush()
        while data := self.rfile.read1(65536):
            self.wfile.write(data)
            self.wfile.flush()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024
    address_family = socket.AF_INET6 if words.address.startswith("[") else socket.AF_INET

    def handle_error(self, *_):
        # Clients that go away are part of the tests.
        pass


host, port = words.address.rsplit(":", 1)
Server((host.strip("[]"), int(port)), Handler).serve_forever()
