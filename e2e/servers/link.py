#!/usr/bin/env python3
"""A link between two interfaces that carries frames as they are, with a delay, and some of them late.

    link.py --delay-ms 5 --late-every 20 --late-ms 3 ONE OTHER

Each frame that arrives on one leaves by the other. Every so many frames with 500 bytes or more, one
waits longer than the others, so that those behind it overtake it. Says "ready" when it carries.
"""

import argparse
import heapq
import itertools
import select
import socket
import time

words = argparse.ArgumentParser()
words.add_argument("--delay-ms", type=float, default=5)
words.add_argument("--late-every", type=int, default=0, help="0: none")
words.add_argument("--late-ms", type=float, default=3)
words.add_argument("ends", nargs=2)
words = words.parse_args()

ALL_PROTOCOLS = 3
OUTGOING = 4
LARGE = 500

ends = []
for name in words.ends:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    end.bind((name, 0))
    end.setblocking(False)
    ends.append(end)
print("ready", flush=True)

waiting = []
order = itertools.count()
large = 0
while True:
    now = time.monotonic()
    while waiting and waiting[0][0] <= now:
        _, _, out, frame = heapq.heappop(waiting)
        try:
            out.send(frame)
        except OSError:
            pass  # A queue that is full loses it, as a link's does.
    left = max(0, waiting[0][0] - now) if waiting else None
    for end in select.select(ends, [], [], left)[0]:
        other = ends[1 - ends.index(end)]
        while True:
            try:
                frame, about = end.recvfrom(65536)
            except BlockingIOError:
                break
            if about[2] == OUTGOING:
                continue
            due = time.monotonic() + words.delay_ms / 1e3
            if len(frame) >= LARGE:
                large += 1
                if words.late_every and large % words.late_every == 0:
                    due += words.late_ms / 1e3
            heapq.heappush(waiting, (due, next(order), other, frame))
