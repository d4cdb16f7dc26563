"""curl as a client: with prior knowledge in clear text, by ALPN over TLS. It does not show trailers of
HTTP/2, and cannot cancel a transfer and keep its connection."""

import pathlib
import subprocess
import tempfile

import cases
from cases import Failed, same

words = cases.arguments()
LARGE = cases.large(words)
VERSION = "--http2" if words.base.startswith("https:") else "--http2-prior-knowledge"


def curl(*more):
    seen = subprocess.run(["curl", "-sS", "--max-time", "15", "--cacert", words.ca, VERSION, *more],
                          capture_output=True, check=False)
    if seen.returncode:
        raise Failed(f"curl exit {seen.returncode}: {seen.stderr.decode().strip()[:200]}")
    return seen.stdout


def expect(path, status, body, *more):
    got, _, said = curl(*more, "-w", "\n%{http_code} %{http_version}", words.base + path).rpartition(b"\n")
    if said.decode() != f"{status} 2":
        raise Failed(f"status and version {said.decode()}: {got[:80]!r}")
    same(got, body)


def many(count, at):
    """Transfers of one curl process; it may open as many connections as it likes."""
    with tempfile.TemporaryDirectory() as folder:
        urls = "".join(f'url = "{words.base}/wait?ms=50&n={n}"\noutput = "{folder}/{n}"\n' for n in range(count))
        listed = pathlib.Path(folder, "urls")
        listed.write_text(urls)
        said = curl("-Z", "--parallel-max", str(at), "-w", "%{http_code} %{num_connects}\n", "-K", str(listed))
        lines = [line.split() for line in said.decode().splitlines()]
        good = [line for line in lines if line[0] == "200"]
        if len(good) != count:
            raise Failed(f"{count - len(good)} of {count} failed: {next(l for l in lines if l[0] != '200')}")
        return sum(int(line[1]) for line in lines)


def parallel():
    connections = many(100, 100)
    if connections != 1:
        raise Failed(f"{connections} connections")


def goaway():
    cases.report("goaway", "started")
    many(200, 10)


def head():
    got = curl("--head", words.base + "/small").decode().lower()
    if not got.startswith("http/2 200") or "\r\ncontent-length: 6\r\n" not in got:
        raise Failed(repr(got[:200]))


def fields():
    named, text = cases.fields()
    expect("/fields", 200, text, *(word for name, value in named for word in ("-H", f"{name}: {value}")))


cases.run(words, {
    "get": lambda: expect("/small", 200, b"hello\n"),
    "get-5m": lambda: expect("/large", 200, LARGE),
    "post-5m": lambda: expect("/echo", 200, LARGE, "-H", "Expect:", "--data-binary", f"@{words.body}"),
    "head": head,
    "204": lambda: expect("/204", 204, b""),
    "304": lambda: expect("/304", 304, b""),
    "parallel-100": parallel, "goaway": goaway, "fields-8k": fields,
    "early": lambda: expect("/early", 200, b"early\n", "-H", "Expect:", "--limit-rate", "3M", "--data-binary",
                            f"@{words.body}"),
    "slow-reader": lambda: expect("/large", 200, LARGE, "--limit-rate", "3M"),
})
