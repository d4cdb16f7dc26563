#!/usr/bin/env python3
"""An HTTP/1.1 server whose answers take known times: for tests of what measures times.

--delays-ms A-B   answers take A, A+1, … B milliseconds, each as often as the others, in an order
                  that is mixed and the same every time
--stall-every-s   so often, counted from the first request, everything stands still, at the end of
                  that time and for --stall-for-s: no answer is written
--accept-on-usr1  nothing is accepted before SIGUSR1; --backlog says how many may wait meanwhile

/-/count answers how many requests there were; /-/times how long each of them took, from its head
read to its answer written, in milliseconds, as a JSON list: on a busy machine that is more than what
was asked for.
"""

import argparse
import asyncio
import json
import signal
import socket
import time

words = argparse.ArgumentParser()
words.add_argument("--address", required=True)
words.add_argument("--delays-ms", default="0-0")
words.add_argument("--stall-every-s", type=float, default=0)
words.add_argument("--stall-for-s", type=float, default=0)
words.add_argument("--accept-on-usr1", action="store_true")
words.add_argument("--backlog", type=int, default=4096)
words = words.parse_args()
if words.accept_on_usr1:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

first, last = (int(n) for n in words.delays_ms.split("-"))
values = list(range(first, last + 1))
# Multiples of a number that shares no factor with their count visit every value once.
stride = next(n for n in range(len(values) * 5 // 8 + 1, len(values) * 2 + 2)
              if all(n % d or len(values) % d for d in range(2, len(values) + 1)))
requests = 0
times_ms = []


async def serve(reader, writer):
    global requests
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            arrived = time.monotonic()
            if head.startswith(b"GET /-/count "):
                body = str(requests).encode()
            elif head.startswith(b"GET /-/times "):
                body = json.dumps(times_ms).encode()
            else:
                delay = values[requests * stride % len(values)] / 1000
                requests += 1
                await asyncio.sleep(max(0, arrived + delay - time.monotonic()))
                body = b"hello"
                times_ms.append((time.monotonic() - arrived) * 1000)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    host, port = words.address.rsplit(":", 1)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, int(port)))
    listener.listen(words.backlog)
    if words.accept_on_usr1:
        signal.sigwait([signal.SIGUSR1])
    await asyncio.start_server(serve, sock=listener, backlog=words.backlog)
    while requests == 0:
        await asyncio.sleep(0.001)
    while words.stall_every_s:
        await asyncio.sleep(words.stall_every_s - words.stall_for_s)
        # Blocks the only thread: no request is answered.
        time.sleep(words.stall_for_s)
    await asyncio.Event().wait()


asyncio.run(main())
