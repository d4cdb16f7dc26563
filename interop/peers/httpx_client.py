"""httpx (Python's h2 package) as a client, with prior knowledge in clear text, or over TLS. It has no API
for trailers, and sends no RST_STREAM when a response is closed early, so it cannot cancel."""

import asyncio
import ssl

import httpx

import cases
from cases import Failed, same

words = cases.arguments()
LARGE = cases.large(words)


def client():
    verify = ssl.create_default_context(cafile=words.ca)
    return httpx.AsyncClient(http1=False, http2=True, verify=verify, timeout=10,
                             limits=httpx.Limits(max_connections=1))


async def expect(http, method, path, status, body, **more):
    got = await http.request(method, words.base + path, **more)
    if got.status_code != status or got.http_version != "HTTP/2":
        raise Failed(f"status {got.status_code} over {got.http_version}: {got.content[:80]!r}")
    same(got.content, body)
    return got


async def small(http):
    await expect(http, "GET", "/small", 200, b"hello\n")


async def many(http, count, at):
    slots, failed = asyncio.Semaphore(at), []

    async def one():
        async with slots:
            try:
                await expect(http, "GET", "/wait?ms=50", 200, b"hello\n")
            except Exception as why:
                failed.append(f"{type(why).__name__}: {why}")
    await asyncio.gather(*(one() for _ in range(count)))
    if failed:
        raise Failed(f"{len(failed)} of {count} failed: {failed[0]}")


async def head(http):
    got = await expect(http, "HEAD", "/small", 200, b"")
    if got.headers.get("content-length") != "6":
        raise Failed(f"content-length {got.headers.get('content-length')}")


async def parallel(http):
    await small(http)
    await many(http, 100, 100)


async def goaway(http):
    cases.report("goaway", "started")
    await many(http, 200, 10)


async def fields(http):
    named, text = cases.fields()
    await expect(http, "GET", "/fields", 200, text, headers=named)


async def early(http):
    async def body():
        for _ in range(5_000_000 // 16_384):
            await asyncio.sleep(0.005)
            yield bytes(16_384)
    await expect(http, "POST", "/early", 200, b"early\n", content=body())
    await small(http)


async def slow_reader(http):
    got = b""
    async with http.stream("GET", words.base + "/large") as response:
        async for chunk in response.aiter_raw(250_000):
            got += chunk
            await asyncio.sleep(0.05)
            await small(http)
    same(got, LARGE)


def case(body):
    async def alone():
        async with client() as http:
            await body(http)
    return lambda: asyncio.run(alone())


cases.run(words, {name: case(body) for name, body in {
    "get": small,
    "get-5m": lambda http: expect(http, "GET", "/large", 200, LARGE),
    "post-5m": lambda http: expect(http, "POST", "/echo", 200, LARGE, content=LARGE),
    "head": head,
    "204": lambda http: expect(http, "GET", "/204", 204, b""),
    "304": lambda http: expect(http, "GET", "/304", 304, b""),
    "parallel-100": parallel, "goaway": goaway, "fields-8k": fields, "early": early,
    "slow-reader": slow_reader,
}.items()})
