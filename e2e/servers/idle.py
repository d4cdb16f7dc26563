#!/usr/bin/env python3
"""An HTTP/1.1 server that keeps connections and closes each after a time of silence, without
having said that it would, as many servers do. Counts and answers as ids.py."""

import argparse
import asyncio
import json

words = argparse.ArgumentParser()
words.add_argument("--address", required=True)
words.add_argument("--idle-s", type=float, default=2)
words = words.parse_args()

seen = set()
requests = 0
closed = 0


class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.received = b""
        self.rest()

    def rest(self):
        self.timer = asyncio.get_running_loop().call_later(words.idle_s, self.close)

    def close(self):
        global closed
        closed += 1
        self.transport.close()

    def connection_lost(self, _):
        self.timer.cancel()

    def data_received(self, data):
        self.timer.cancel()
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            lines = self.received[:end].decode("latin-1").split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in lines[1:])
            end += 4 + int(fields.get("content-length", 0))
            if len(self.received) < end:
                break
            self.received = self.received[end:]
            self.answer(lines[0].split(" "), fields)
        self.timer.cancel()
        self.rest()

    def answer(self, request_line, fields):
        global requests
        body = fields.get("x-id", "").encode()
        if request_line[1] == "/-/stats":
            body = json.dumps({
                "requests": requests,
                "distinct": len(seen),
                "duplicates": requests - len(seen),
                "closed_idle": closed,
            }).encode()
        elif request_line[0] == "POST":
            requests += 1
            seen.add(body)
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


async def main():
    host, port = words.address.rsplit(":", 1)
    server = await asyncio.get_running_loop().create_server(
        Connection, host, int(port), backlog=4096)
    await server.serve_forever()


asyncio.run(main())
