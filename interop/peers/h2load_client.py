"""h2load as a client: it counts what succeeded, and sees neither bodies nor trailers."""

import re
import subprocess

import cases
from cases import Failed

words = cases.arguments()


def load(path, count, at, *more, kind="2xx"):
    seen = subprocess.run(["h2load", "-n", str(count), "-c", "1", "-m", str(at), "-N", "20", *more, words.base + path],
                          capture_output=True, text=True, check=False)
    counts = re.search(r"(\d+) succeeded, (\d+) failed", seen.stdout)
    statuses = dict((name, int(n)) for n, name in re.findall(r"(\d+) (\dxx)", seen.stdout))
    if not counts or int(counts[1]) != count or statuses.get(kind) != count:
        raise Failed(" ".join((seen.stdout + seen.stderr).split())[-200:] if not counts
                     else f"of {count}: {counts[0]}, {statuses}")
    data = re.search(r"\((\d+)\) data", seen.stdout)
    return int(data[1]) if data else None


def get_large():
    got = load("/large", 3, 3)
    if got != 15_000_000:
        raise Failed(f"{got} bytes of 15,000,000")


def goaway():
    cases.report("goaway", "started")
    load("/wait?ms=50", 200, 10)


def fields():
    load("/fields", 20, 5, *(f"-H{name}: {value}" for name, value in cases.fields()[0]))


cases.run(words, {
    "get": lambda: load("/small", 1, 1),
    "get-5m": get_large,
    "post-5m": lambda: load("/echo", 2, 2, "-d", words.body),
    "head": lambda: load("/small", 1, 1, "-H:method: HEAD"),
    "204": lambda: load("/204", 5, 5),
    "304": lambda: load("/304", 5, 5, kind="3xx"),
    "parallel-100": lambda: load("/wait?ms=50", 100, 100),
    "goaway": goaway, "fields-8k": fields,
    "early": lambda: load("/early", 2, 2, "-d", words.body),
    "slow-reader": lambda: load("/large", 2, 2, "-w", "10", "-W", "16"),
})
