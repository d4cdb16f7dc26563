#!/usr/bin/env python3
"""A WebSocket server on the websockets package (HTTP/1.1): every message is sent back."""

import argparse

from websockets.sync.server import serve

words = argparse.ArgumentParser()
words.add_argument("--address", required=True)
words = words.parse_args()


def echo(socket):
    for message in socket:
        socket.send(message)


host, port = words.address.rsplit(":", 1)
with serve(echo, host, int(port), max_size=None, compression=None) as server:
    server.serve_forever()
