#!/usr/bin/env python3
"""Closed-loop load on Python's http.client: each thread sends one request after the other on a
kept connection and notes how every single one ended. SIGTERM or --seconds ends it; running
requests are waited for. Prints `started`, and in the end one line of JSON:

  requests, statuses {code: n}, servers {X-Served-By: n},
  without_response  requests that ended without any response, by exception in "exceptions"
  broken_off        responses that had begun and did not end
  slowest_s, slowest [[start_s, seconds, status or exception], ...] the ten slowest
  failures [[start_s, seconds, what], ...] the first twenty that were no response or broke off
"""

import argparse
import collections
import http.client
import json
import signal
import socket
import threading
import time

words = argparse.ArgumentParser()
words.add_argument("--address", required=True)
words.add_argument("--target", default="/")
words.add_argument("--method", default="GET")
words.add_argument("--threads", type=int, default=8)
words.add_argument("--seconds", type=float, default=300)
words.add_argument("--pause-ms", type=float, default=0, help="between two requests of a thread")
words.add_argument("--body-bytes", type=int, default=0)
words.add_argument("--source", default="", help="local address to connect from")
words.add_argument("--new-connections", action="store_true", help="one for each request")
words = words.parse_args()

host, port = words.address.rsplit(":", 1)
began = time.monotonic()
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())  # before "started" is printed


class Tally:
    def __init__(self):
        self.requests = 0
        self.statuses = collections.Counter()
        self.servers = collections.Counter()
        self.exceptions = collections.Counter()
        self.without_response = 0
        self.broken_off = 0
        self.slowest = []
        self.failures = []

    def note(self, start, what, failed):
        took = time.monotonic() - start
        row = (round(took, 4), round(start - began, 3), str(what))
        self.slowest.append(row)
        if len(self.slowest) > 100:
            self.slowest = sorted(self.slowest, reverse=True)[:10]
        if failed:
            self.failures.append(row)


def client(tally):
    connection = None
    body = b"x" * words.body_bytes if words.body_bytes else None
    while not stop.is_set():
        if connection is None:
            source = (words.source, 0) if words.source else None
            connection = http.client.HTTPConnection(
                host.strip("[]"), int(port), timeout=30, source_address=source
            )
        start = time.monotonic()
        tally.requests += 1
        response = None
        try:
            if connection.sock is None:
                connection.connect()
                connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.request(words.method, words.target, body=body)
            response = connection.getresponse()
            response.read()
            tally.statuses[response.status] += 1
            tally.servers[response.headers.get("X-Served-By", "")] += 1
            tally.note(start, response.status, False)
            if response.will_close or words.new_connections:
                connection.close()
                connection = None
        except (OSError, http.client.HTTPException) as error:
            what = f"{type(error).__name__}: {error}"
            tally.exceptions[what] += 1
            if response is None:
                tally.without_response += 1
            else:
                tally.broken_off += 1
            tally.note(start, what, True)
            connection.close()
            connection = None
            # A peer that refuses everything must not be spun against.
            stop.wait(0.01)
        if words.pause_ms:
            stop.wait(words.pause_ms / 1000)


tallies = [Tally() for _ in range(words.threads)]
threads = [threading.Thread(target=client, args=(tally,)) for tally in tallies]
for thread in threads:
    thread.start()
print("started", flush=True)
while not stop.is_set() and time.monotonic() - began < words.seconds:
    stop.wait(0.2)
stop.set()
for thread in threads:
    thread.join()


def total(name):
    return sum((getattr(tally, name) for tally in tallies), collections.Counter())


slowest = sorted((row for tally in tallies for row in tally.slowest), reverse=True)[:10]
failures = sorted((row for tally in tallies for row in tally.failures), key=lambda row: row[1])[:20]
print(json.dumps({
    "requests": sum(tally.requests for tally in tallies),
    "statuses": total("statuses"),
    "servers": total("servers"),
    "exceptions": total("exceptions"),
    "without_response": sum(tally.without_response for tally in tallies),
    "broken_off": sum(tally.broken_off for tally in tallies),
    "slowest_s": slowest[0][0] if slowest else 0,
    "slowest": [[start, took, what] for took, start, what in slowest],
    "failures": [[start, took, what] for took, start, what in failures],
    "seconds": time.monotonic() - began,
}), flush=True)
