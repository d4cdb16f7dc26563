"""Hypercorn, a server on Python's h2 package: HTTP/2 in clear text and over TLS. SIGTERM ends it when
the requests that run have ended. interop/README.md describes the paths."""

import argparse
import asyncio
import pathlib
import signal
from urllib.parse import parse_qs

from hypercorn.asyncio import serve
from hypercorn.config import Config

words = argparse.ArgumentParser()
for word in ("clear", "tls", "chain", "key", "body"):
    words.add_argument(f"--{word}")
words = words.parse_args()
LARGE = pathlib.Path(words.body).read_bytes()


def fields_of(scope):
    fields = [(name.decode(), value.decode()) for name, value in scope["headers"]]
    lines = sorted(f"{name}: {value}\n" for name, value in fields if name.startswith("x-f-"))
    return "".join(lines) + "cookie: " + "; ".join(value for name, value in fields if name == "cookie") + "\n"


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    path = scope["path"]

    async def text(content, status=200, more=()):
        headers = [*more, *([(b"content-length", str(len(content)).encode())] if status == 200 else [])]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else content})

    if path == "/small":
        await text(b"hello\n")
    elif path == "/large":
        await text(LARGE)
    elif path == "/early":
        await text(b"early\n")
    elif path == "/fields":
        await text(fields_of(scope).encode())
    elif path == "/wait":
        await asyncio.sleep(float(parse_qs(scope["query_string"].decode()).get("ms", ["0"])[0]) / 1000)
        await text(b"hello\n")
    elif path == "/204":
        await text(b"", 204)
    elif path == "/304":
        await text(b"", 304, [(b"etag", b'"1"')])
    elif path == "/trailers":
        await send({"type": "http.response.start", "status": 200, "headers": [], "trailers": True})
        await send({"type": "http.response.body", "body": b"hello\n"})
        await send({"type": "http.response.trailers", "headers": [(b"x-sum", b"6")], "more_trailers": False})
    elif path == "/echo":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        more = True
        while more:
            event = await receive()
            if event["type"] != "http.request":
                return
            more = event.get("more_body", False)
            await send({"type": "http.response.body", "body": event.get("body", b""), "more_body": more})
    else:
        await text(b"", 404)


async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    config = Config()
    config.insecure_bind, config.bind = [words.clear], [words.tls]
    config.certfile, config.keyfile = words.chain, words.key
    config.alpn_protocols = ["h2"]
    config.graceful_timeout = 5
    config.loglevel = "error"
    await serve(app, config, shutdown_trigger=stop.wait)


asyncio.run(main())
