#!/usr/bin/env python3
"""Answers every connection over TLS with a body that never ends, as fast as it is taken.

--chain and --key: its certificate, PEM files.
"""

import argparse
import socket
import ssl
import threading

words = argparse.ArgumentParser()
words.add_argument("--address", required=True)
words.add_argument("--chain", required=True)
words.add_argument("--key", required=True)
words = words.parse_args()

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(words.chain, words.key)
piece = b"x" * 65536


def serve(stream):
    try:
        with context.wrap_socket(stream, server_side=True) as tls:
            tls.recv(65536)
            tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000\r\n\r\n")
            while True:
                tls.sendall(piece)
    except OSError:
        pass


host, port = words.address.rsplit(":", 1)
listener = socket.create_server((host, int(port)), backlog=4096)
while True:
    stream, _ = listener.accept()
    threading.Thread(target=serve, args=(stream,), daemon=True).start()
