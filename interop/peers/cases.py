"""What the clients in Python share: the words of the command line, and a line of JSON for each case."""

import argparse
import hashlib
import json
import pathlib


class NotApplicable(Exception):
    """The client's API cannot express the case."""


class Failed(Exception):
    """The case failed; the text says how."""


def arguments():
    words = argparse.ArgumentParser()
    for word in ("base", "ca", "body", "cases"):
        words.add_argument(f"--{word}", required=True)
    return words.parse_args()


def large(words):
    return pathlib.Path(words.body).read_bytes()


def report(name, result, why=""):
    print(json.dumps({"case": name, "result": result, "why": why}), flush=True)


def run(words, cases):
    for name in words.cases.split(","):
        if name not in cases:
            report(name, "n/a")
            continue
        try:
            cases[name]()
            report(name, "pass")
        except NotApplicable as why:
            report(name, "n/a", str(why))
        except Exception as why:  # Whatever a library raises is the result of the case.
            report(name, "fail", f"{type(why).__name__}: {why}" if not isinstance(why, Failed) else str(why))


def same(got, wanted):
    if hashlib.sha256(got).digest() != hashlib.sha256(wanted).digest():
        raise Failed(f"{len(got)} bytes that differ from the {len(wanted)} expected: {got[:60]!r}")


def fields():
    """The fields of the case fields-8k, and what /fields answers to them."""
    named = [(f"x-f-{n:02}", f"{n:02}" * 75) for n in range(40)]
    cookie = "; ".join(f"c{n:02}=" + "v" * 96 for n in range(20))
    text = "".join(f"{name}: {value}\n" for name, value in named) + f"cookie: {cookie}\n"
    return [*named, ("cookie", cookie)], text.encode()
