#!/usr/bin/env python3
"""POSTs on many kept connections, each with an id of its own, at a pace: after every answer a
connection rests for a random time of --pause-ms A-B; with --together all rest equally long (but
for a few milliseconds each), so that they come as one wave, and a balancer's connections to its
servers have rested as long as they have. The rests of the waves cover A-B evenly.

Nothing is sent twice. Ends after --requests; prints one line of JSON: requests, statuses,
no_answer (by what was seen instead), wrong (answers with another id than was sent), slowest_s.
"""

import argparse
import asyncio
import collections
import json
import random
import time

words = argparse.ArgumentParser()
words.add_argument("--address", required=True)
words.add_argument("--target", default="/")
words.add_argument("--connections", type=int, default=8)
words.add_argument("--requests", type=int, required=True)
words.add_argument("--pause-ms", default="0-0")
words.add_argument("--together", action="store_true")
words.add_argument("--seed", type=int, default=None)
words = words.parse_args()

host, port = words.address.rsplit(":", 1)
least, most = (float(part) / 1000 for part in words.pause_ms.split("-"))
seed = words.seed if words.seed is not None else random.randrange(1 << 32)
chance = random.Random(seed)
ANSWER_WITHIN_S = 30
# How far apart the requests of one wave are.
WAVE_S = 0.02

left = words.requests
statuses, no_answer = collections.Counter(), collections.Counter()
wrong = slowest = 0


class Gone(Exception):
    """The connection ended with the request unanswered, or in mid answer."""


class Client:
    def __init__(self, name):
        self.name, self.streams, self.sent = name, None, 0

    async def post(self):
        global left, wrong, slowest
        if left == 0:
            return
        left -= 1
        self.sent += 1
        name = f"{self.name}-{self.sent}"
        began = time.monotonic()
        try:
            status, body = await asyncio.wait_for(self.exchange(name), ANSWER_WITHIN_S)
            statuses[status] += 1
            wrong += status == 200 and body != name
        except (OSError, Gone, ValueError, asyncio.TimeoutError) as error:
            no_answer[type(error).__name__] += 1
            self.close()
        slowest = max(slowest, time.monotonic() - began)

    async def exchange(self, name):
        if self.streams is None:
            self.streams = await asyncio.open_connection(host.strip("[]"), int(port))
        reader, writer = self.streams
        writer.write(
            f"POST {words.target} HTTP/1.1\r\nHost: paced\r\nX-Id: {name}\r\n"
            f"Content-Length: 4\r\n\r\nbody".encode())
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
            body = await reader.readexactly(int(fields["content-length"]))
        except asyncio.IncompleteReadError as error:
            raise Gone from error
        if fields.get("connection") == "close":
            self.close()
        return int(head.split(" ")[1]), body.decode("latin-1")

    def close(self):
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


async def alone(client):
    while left:
        await client.post()
        await asyncio.sleep(chance.uniform(least, most))


async def together(clients):
    async def one(client):
        await asyncio.sleep(chance.uniform(0, WAVE_S))
        await client.post()

    # Steps of the golden ratio leave no large gap, however many waves there are: with random rests,
    # all of a few waves can miss the moment that the test is about.
    share = chance.random()
    while left:
        await asyncio.gather(*(one(client) for client in clients))
        await asyncio.sleep(least + (most - least) * share)
        share = (share + 0.618034) % 1


async def main():
    clients = [Client(number) for number in range(words.connections)]
    if words.together:
        await together(clients)
    else:
        await asyncio.gather(*(alone(client) for client in clients))


began = time.monotonic()
asyncio.run(main())
print(json.dumps({
    "requests": words.requests,
    "statuses": statuses,
    "no_answer": no_answer,
    "wrong": wrong,
    "slowest_s": round(slowest, 3),
    "seconds": round(time.monotonic() - began, 1),
    "seed": seed,
}), flush=True)
