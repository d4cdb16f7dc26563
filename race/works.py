"""What is raced: each work's load, and how its requests are counted."""

import http.client
import pathlib
import re
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

from contestants import Missing


@dataclass
class Work:
    """One kind of traffic. `latency`: also at 70 % of what HAProxy carries."""

    title: str
    by: str = "wrk"
    port: str = "http"
    path: str = "/"
    connections: int = 32
    streams: int = 10
    body: bytes = b""
    headers: list = field(default_factory=list)
    script: str = ""
    services: int = 0
    latency: bool = False
    logged: bool = False
    compressed: bool = False
    without: dict = field(default_factory=dict)


NO_HTTP = "reads no HTTP"
WORKS = {
    "small-32": Work("GET, 64 bytes, 32 kept connections", latency=True),
    "small-256": Work("GET, 64 bytes, 256 kept connections", connections=256, latency=True),
    "small-2000": Work("GET, 64 bytes, 2,000 kept connections", connections=2000),
    "50k": Work("GET, 50 kB", path="/50k", latency=True),
    "1m": Work("GET, 1 MB", path="/1m", connections=16),
    "post-10k": Work("POST, 10 kB", path="/upload", script="post-10k.lua"),
    "per-request": Work("a connection per request", headers=["Connection: close"]),
    "routes-1000": Work("GET, 64 bytes, 1,000 hosts with a service each", services=1000,
                        headers=["Host: service-777.example"], without={"floor": NO_HTTP}),
    "tls": Work("GET, 64 bytes, TLS 1.3, kept connections", port="tls", latency=True,
                without={"floor": "speaks no TLS"}),
    # Not wrk, which resumes its sessions whatever it is asked.
    "tls-full": Work("TLS 1.3, a full handshake per request", port="tls",
                     by="s_time -new -tls1_3", without={"floor": "speaks no TLS"}),
    "tls-resumed": Work("TLS 1.2, a resumed session per request", port="tls",
                        by="s_time -reuse -tls1_2",
                        without={"floor": "speaks no TLS"}),
    "tls-1m": Work("GET, 1 MB, TLS 1.3", port="tls", path="/1m", connections=16,
                   without={"floor": "speaks no TLS"}),
    "h2": Work("GET, 64 bytes, HTTP/2, 8 × 10 streams", port="tls", by="h2load", connections=8,
               without={"floor": "speaks no HTTP/2"}),
    "h2-1m": Work("GET, 1 MB, HTTP/2, 8 × 10 streams", port="tls", by="h2load", path="/1m", connections=8,
                  without={"floor": "speaks no HTTP/2"}),
    "h2-both": Work("GET, 64 bytes, HTTP/2 on both sides", port="both",
                    by="h2load", connections=8,
                    without={"floor": "speaks no HTTP/2", "nginx": "speaks HTTP/1 to servers, but for gRPC"}),
    "grpc": Work("gRPC, unary calls, one connection, 100 streams", port="both", by="h2load",
                 path="/grpc", connections=1, streams=100, body=b"\0\0\0\0\x0a0123456789",
                 headers=["content-type: application/grpc", "te: trailers"],
                 without={"floor": "speaks no HTTP/2",
                          "nginx": "fails where a server answers before it has read the request"}),
    "tcp": Work("TCP mode, small requests, 32 connections", port="tcp"),
    "tcp-1m": Work("TCP mode, 1 MB responses", port="tcp", path="/1m", connections=16),
    "queue": Work("64 clients, 4 servers × 4 places, a queue", port="limited",
                  connections=64, without={"floor": "knows no limits",
                                           "nginx": "has no queue in its open-source version"}),
    "logged": Work("GET, 64 bytes, access log on", port="logged", logged=True,
                   without={"floor": "reads no HTTP"}),
    "gzip": Work("GET, 250 kB of text, compressed with gzip", port="gzip", path="/text",
                 headers=["Accept-Encoding: gzip"], compressed=True,
                 without={"floor": "does not compress", "envoy": "is not configured to compress"}),
}


def port_of(work, contestant):
    """Where this contestant takes this work."""
    if contestant.kind == "floor":
        if work.port == "tcp":
            return contestant.ports["http"]
        if "Connection: close" in work.headers:
            return contestant.ports["pooled"]
    if contestant.kind == "weir" and work.port == "logged":
        return contestant.ports["http"]
    return contestant.ports[work.port]


def compressed_bytes(work, contestant):
    """The length of its compressed response."""
    connection = http.client.HTTPConnection("127.0.0.1", port_of(work, contestant), timeout=10)
    connection.request("GET", work.path, headers=dict(header.split(": ") for header in work.headers))
    response = connection.getresponse()
    body = response.read()
    if response.status != 200 or response.getheader("Content-Encoding") != "gzip":
        raise Missing(f"{contestant.name} does not compress: {response.status}, {response.getheaders()}")
    return len(body)


def run(core, *words):
    done = subprocess.run(["taskset", "-c", core, *words], capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"{words[0]} failed: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
    return done.stdout


def drive(work, contestant, seconds, core):
    """Loads it as hard as the generator can. The number of requests, all of them answered with 200,
    and how many a second."""
    port = port_of(work, contestant)
    scheme = "https" if work.port == "tls" else "http"
    url = f"{scheme}://127.0.0.1:{port}{work.path}"
    if work.by == "h2load":
        headers = [word for header in work.headers for word in ("-H", header)]
        with tempfile.NamedTemporaryFile() as body:
            body.write(work.body)
            body.flush()
            sends = ["-d", body.name] if work.body else []
            out = run(core, "h2load", f"-c{work.connections}", f"-m{work.streams}", f"-D{seconds}",
                      *headers, *sends, url)
        done = int(re.search(r"(\d+) 2xx", out)[1])
        if " 0 failed, 0 errored" not in out or ", 0 4xx, 0 5xx" not in out:
            raise Missing(f"{contestant.name} did not serve every request: {out.splitlines()[-8:]}")
        return done, done / seconds
    if work.by.startswith("s_time"):
        out = run(core, "openssl", *work.by.split(), "-connect", f"127.0.0.1:{port}",
                  "-time", str(seconds), "-www", work.path)
        done = int(re.findall(r"(\d+) connections in \d+ real", out)[-1])
        return done, done / seconds
    headers = [word for header in work.headers for word in ("-H", header)]
    script = ["-s", str(pathlib.Path(__file__).parent / work.script)] if work.script else []
    out = run(core, "wrk", "-t1", f"-c{work.connections}", f"-d{seconds}s", "--timeout", "10s",
              *headers, *script, url)
    if "Non-2xx" in out or "Socket errors" in out:
        raise Missing(f"{contestant.name} did not serve every request: "
                      f"{[line for line in out.splitlines() if 'Non-2xx' in line or 'Socket' in line]}")
    return (int(re.search(r"(\d+) requests in", out)[1]),
            float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]))


def latencies(work, contestant, rate, seconds, core, folder):
    """Response times in µs at a fixed rate, by h2load, and the rate that it reached."""
    log = pathlib.Path(folder) / "latencies.tsv"
    log.unlink(missing_ok=True)
    scheme = "https" if work.port == "tls" else "http"
    each = max(1, round(rate / work.connections))
    run(core, "h2load", "--h1", f"-c{work.connections}", f"--rps={each}", f"-D{seconds}",
        f"--log-file={log}", f"{scheme}://127.0.0.1:{port_of(work, contestant)}{work.path}")
    times = []
    with open(log) as lines:
        for line in lines:
            _, status, took = line.split("\t")
            if status != "200":
                raise Missing(f"{contestant.name} answered {status} at {rate:.0f} requests/s")
            times.append(int(took))
    return times, len(times) / seconds


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def one_round(work, contestant, seconds, core):
    """One measurement: CPU µs for each request, user's and system's share of it, and the rate."""
    before = contestant.cpu_seconds()
    requests, rate = drive(work, contestant, seconds, core)
    user, system, total = (now - then for now, then in zip(contestant.cpu_seconds(), before))
    if not requests:
        raise Missing(f"{contestant.name} served nothing")
    ticks = user + system or 1.0
    return {"cpu_us": total / requests * 1e6, "user_us": total * user / ticks / requests * 1e6,
            "system_us": total * system / ticks / requests * 1e6, "rate": rate}


def race(work, contestants, rounds, seconds, core, said):
    """Rounds in turn, each beginning with another contestant, so that whatever the machine does
    meanwhile happens to all."""
    taking_part = [one for one in contestants if one.kind not in work.without]
    results = {one.name: [] for one in taking_part}
    for one in taking_part:
        drive(work, one, 1, core)  # warm up
    for number in range(rounds):
        said(f"round {number + 1} of {rounds}")
        turn = number % len(taking_part)
        for one in taking_part[turn:] + taking_part[:turn]:
            one.check_alive()
            results[one.name].append(one_round(work, one, seconds, core))
    return results


def latency_race(work, contestants, results, rounds, seconds, core, folder, said):
    """p50, p99 and p99.9 at 70 % of the rate that HAProxy carried flat out."""
    pace = 0.7 * statistics.median(row["rate"] for row in results["haproxy"])
    rows = {one.name: [] for one in contestants if one.name in results}
    for number in range(rounds):
        said(f"latency at {pace:,.0f}/s, round {number + 1} of {rounds}")
        taking_part = [one for one in contestants if one.name in rows]
        turn = number % len(taking_part)
        for one in taking_part[turn:] + taking_part[:turn]:
            times, reached = latencies(work, one, pace, seconds, core, folder)
            if reached < 0.97 * pace:
                said(f"{one.name} reached {reached:,.0f} of {pace:,.0f} requests/s")
            rows[one.name].append({"intended_rate": pace, "rate": reached,
                                   **{name: percentile(times, share) for name, share in
                                      (("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999))}})
            time.sleep(0.1)
    return rows
