"""nghttp as a client. It writes bodies to its standard output and says little else, so statuses come
from its log of frames (-v), in which bodies cannot be told from the rest."""

import re
import subprocess

import cases
from cases import Failed, same

words = cases.arguments()
LARGE = cases.large(words)


def nghttp(path, *more):
    seen = subprocess.run(["nghttp", "--timeout=20", "--no-dep", *more, words.base + path], capture_output=True, check=False)
    if seen.returncode:
        raise Failed(f"nghttp exit {seen.returncode}: {seen.stderr.decode().strip()[:200]}")
    return seen.stdout


def status(path, wanted, *more):
    said = re.sub(r"\x1b\[[0-9;]*m", "", nghttp(path, "-v", "-n", *more).decode(errors="replace"))
    seen = re.findall(r"recv \(stream_id=\d+\) :status: (\d+)", said)
    if seen != [str(wanted)]:
        raise Failed(f"statuses {seen}, end of the log: {said[-150:]!r}")
    return said


def contains(path, text, *more):
    if text not in status(path, 200, *more):
        raise Failed(f"{text!r} is not in the log of frames")


def fields():
    named, text = cases.fields()
    same(nghttp("/fields", *(f"-H{name}: {value}" for name, value in named)), text)


cases.run(words, {
    "get": lambda: same(nghttp("/small"), b"hello\n"),
    "get-5m": lambda: same(nghttp("/large"), LARGE),
    "post-5m": lambda: same(nghttp("/echo", "-d", words.body), LARGE),
    "head": lambda: contains("/small", "content-length: 6", "-H:method: HEAD"),
    "204": lambda: status("/204", 204),
    "304": lambda: status("/304", 304),
    "parallel-100": lambda: same(nghttp("/wait?ms=50", "-m", "100"), b"hello\n" * 100),
    "trailers": lambda: contains("/trailers", "x-sum: 6", "-Hte: trailers"),
    "fields-8k": fields,
    "early": lambda: same(nghttp("/early", "-d", words.body), b"early\n"),
    # A reader with windows of 1 kB, for the stream and the connection.
    "slow-reader": lambda: same(nghttp("/large", "-w", "10", "-W", "16"), LARGE),
})
