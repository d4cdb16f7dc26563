"""What does not depend on requests a second: memory at rest, for each idle connection and at the
peak; how long a start and a reload take; how two workers share the work."""

import re
import socket
import statistics
import time
import urllib.request

from contestants import Missing, wait_until
from works import WORKS, drive, one_round

IDLE_CONNECTIONS = 10_000
# How long the last of them has been silent when memory is read: long enough for who gives memory
# back after a while, and far from any time-out.
SILENT_SECONDS = 3


def fetch(port, host="app.example", path="/"):
    """The body of one answer over a connection of its own, or None while there is no answer."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while piece := client.recv(65536):
                answer += piece
    except OSError:
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    return body if head.startswith(b"HTTP/1.1 200") else None


def idle_bytes(contestant, port, request):
    """Bytes for each of IDLE_CONNECTIONS that have had one answer, which ends with `ok`."""
    time.sleep(0.5)
    before = contestant.memory_kb()
    idle = []
    try:
        for number in range(IDLE_CONNECTIONS):
            client = socket.create_connection(("127.0.0.1", contestant.ports[port]), timeout=10)
            idle.append(client)
            client.sendall(request)
            answer = b""
            while b" ok\n" not in answer:
                piece = client.recv(4096)
                if not piece:
                    raise Missing(f"{contestant.name} did not answer idle connection {number}")
                answer += piece
        time.sleep(SILENT_SECONDS)
        return (contestant.memory_kb() - before) * 1024 / IDLE_CONNECTIONS
    finally:
        for client in idle:
            client.close()


def http2_request():
    """The preface, settings, one request, and the acknowledgement of the other side's settings."""
    def frame(kind, flags, stream, payload=b""):
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
    authority = b"app.example"
    # GET, http, / and a literal :authority that enters the table (RFC 7541).
    block = b"\x82\x86\x84\x41" + bytes([len(authority)]) + authority
    return (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + frame(1, 5, 1, block)
            + frame(4, 1, 0))


def memory(contestant, core, said):
    """kB at rest; bytes for each idle connection, of HTTP/1.1 and of HTTP/2; kB at the peak of 2,000
    busy ones, which is measured last."""
    time.sleep(0.5)
    at_rest = contestant.memory_kb()
    said(f"{contestant.name}: {IDLE_CONNECTIONS:,} idle connections")
    idle = idle_bytes(contestant, "http", b"GET / HTTP/1.1\r\nHost: app.example\r\n\r\n")
    said(f"{contestant.name}: {IDLE_CONNECTIONS:,} idle connections of HTTP/2")
    idle_http2 = idle_bytes(contestant, "both", http2_request())
    time.sleep(0.5)
    contestant.forget_peak()
    drive(WORKS["small-2000"], contestant, 2, core)
    return {"at_rest_kb": at_rest, "peak_kb": contestant.peak_kb(),
            "idle_connection_bytes": idle, "idle_http2_connection_bytes": idle_http2}


def start_and_reload(contestant, folder, services):
    """Seconds from the start of the program to the first answer by the last of its services, and
    from asking for a reload to the first answer that only the new configuration gives."""
    last = f"service-{services - 1}.example"
    contestant.write(folder, services=services, marker="marker_1")
    began = time.monotonic()
    contestant.start()
    try:
        wait_until(lambda: contestant.check_alive() or fetch(contestant.ports["http"], last),
                   f"{contestant.name} with {services} services", 120)
        started = time.monotonic() - began
        if fetch(contestant.ports["http"], "marker.example") != b"one\n":
            raise Missing(f"{contestant.name} does not route marker.example")
        time.sleep(1)
        at_rest = contestant.memory_kb()
        began = time.monotonic()
        contestant.write(folder, services=services, marker="marker_2")
        written = time.monotonic() - began
        began = time.monotonic()
        contestant.reload()
        wait_until(lambda: fetch(contestant.ports["http"], "marker.example") == b"two\n",
                   f"{contestant.name}'s reload with {services} services", 120)
        reloaded = time.monotonic() - began
        # Envoy sees its files change by itself: for it the writing is part of the reload.
        reloaded += written if contestant.kind == "envoy" else 0
        return {"start_s": started, "reload_s": reloaded, "rest_kb": at_rest}
    finally:
        contestant.stop()


def accepted_by_worker(contestant):
    """Connections that each worker of Weir serves now."""
    with urllib.request.urlopen(f"http://127.0.0.1:{contestant.ports['admin']}/metrics") as answer:
        text = answer.read().decode()
    rows = re.findall(r'^weir_worker_connections\{worker="(\d+)"\} (\d+)', text, re.M)
    return [int(count) for _, count in sorted(rows)]


def two_workers(weir, folder, rounds, seconds, core, said):
    """CPU per request of one and of two workers, both on all cores, and how 64 connections are
    spread over the two."""
    results = {1: [], 2: []}
    spread = []
    for number in range(rounds):
        for workers in (1, 2) if number % 2 else (2, 1):
            said(f"{workers} worker(s), round {number + 1} of {rounds}")
            weir.write(folder, workers=workers)
            weir.start(pinned=False)
            try:
                wait_until(lambda: fetch(weir.ports["http"]), "weir")
                drive(WORKS["small-32"], weir, 1, core)
                results[workers].append(one_round(WORKS["small-32"], weir, seconds, core))
                if workers == 2:
                    open_now = [socket.create_connection(("127.0.0.1", weir.ports["http"])) for _ in range(64)]
                    time.sleep(0.3)
                    spread.append(accepted_by_worker(weir))
                    for client in open_now:
                        client.close()
            finally:
                weir.stop()
    ratio = statistics.median(two["cpu_us"] / one["cpu_us"] for one, two in zip(results[1], results[2]))
    return {"one": results[1], "two": results[2], "ratio": ratio, "connections": spread}


