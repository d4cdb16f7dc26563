#!/usr/bin/env python3
"""A TCP server for tcp mode. It reads until the client closes its sending side, then answers
`NAME BYTES SHA256` and a newline and closes: a balancer that does not keep half-close never
sees the answer. With --echo it sends everything back at once instead."""

import argparse
import hashlib
import socketserver

words = argparse.ArgumentParser()
words.add_argument("--name", default="tcp")
words.add_argument("--address", required=True)
words.add_argument("--echo", action="store_true")
words = words.parse_args()


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        digest, count = hashlib.sha256(), 0
        while data := self.request.recv(65536):
            digest.update(data)
            count += len(data)
            if words.echo:
                self.request.sendall(data)
        if not words.echo:
            self.request.sendall(f"{words.name} {count} {digest.hexdigest()}\n".encode())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024


host, port = words.address.rsplit(":", 1)
Server((host, int(port)), Handler).serve_forever()
