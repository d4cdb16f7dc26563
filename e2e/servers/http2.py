#!/usr/bin/env python3
"""An HTTP/2 server on the h2 package, in clear text with prior knowledge, a thread for each
connection. What a request can ask for, as query parameters (all optional): size=N a body of N
bytes instead of the echo; status=N; early=1 a 103 first; trailer=1 a trailer field x-sum;
work_ms=N. The echo is that of app.py. An extended CONNECT (RFC 8441) is answered with 200, and
its bytes are sent back."""

import argparse
import hashlib
import json
import socket
import threading
import time
from urllib.parse import parse_qsl, urlsplit

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

words = argparse.ArgumentParser()
words.add_argument("--name", default="http2")
words.add_argument("--address", required=True)
words = words.parse_args()


class Stream:
    def __init__(self, fields):
        self.fields = fields
        self.pseudo = dict(field for field in fields if field[0].startswith(":"))
        self.tunnel = self.pseudo.get(":method") == "CONNECT"
        self.digest = hashlib.sha256()
        self.count = 0
        self.trailers = []
        # To be sent.
        self.out = bytearray()
        self.out_trailers = None
        self.ending = False


class Connection(threading.Thread):
    def __init__(self, sock):
        super().__init__(daemon=True)
        self.sock = sock
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self.h2 = h2.connection.H2Connection(config)
        # What is set one by one takes effect only once the peer has agreed.
        initial = dict(self.h2.local_settings)
        initial[h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL] = 1
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values=initial)
        self.streams = {}
        self.due = []

    def run(self):
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.h2.initiate_connection()
        self.sock.sendall(self.h2.data_to_send())
        try:
            while self.turn():
                pass
        except (OSError, h2.exceptions.ProtocolError):
            pass
        self.sock.close()

    def turn(self):
        wait = max(0.0, min(at for at, _ in self.due) - time.monotonic()) if self.due else None
        self.sock.settimeout(wait if wait is None else wait + 0.001)
        try:
            data = self.sock.recv(65536)
            if not data:
                return False
            for event in self.h2.receive_data(data):
                self.handle(event)
        except TimeoutError:
            pass
        now = time.monotonic()
        for at, number in [due for due in self.due if due[0] <= now]:
            self.due.remove((at, number))
            if number in self.streams:
                self.answer(number, self.streams[number])
        for number, stream in list(self.streams.items()):
            self.flush(number, stream)
        self.sock.sendall(self.h2.data_to_send())
        return True

    def handle(self, event):
        number = getattr(event, "stream_id", None)
        stream = self.streams.get(number)
        if isinstance(event, h2.events.RequestReceived):
            stream = self.streams[number] = Stream(event.headers)
            if stream.tunnel:
                self.h2.send_headers(number, [(":status", "200"), ("x-served-by", words.name)])
        elif stream is None:
            pass
        elif isinstance(event, h2.events.DataReceived):
            self.h2.acknowledge_received_data(event.flow_controlled_length, number)
            if stream.tunnel:
                stream.out += event.data
            stream.count += len(event.data)
            stream.digest.update(event.data)
        elif isinstance(event, h2.events.TrailersReceived):
            stream.trailers = [f"{name}: {value}" for name, value in event.headers]
        elif isinstance(event, h2.events.StreamEnded):
            if stream.tunnel:
                stream.ending = True
            else:
                asked = dict(parse_qsl(urlsplit(stream.pseudo[":path"]).query))
                self.due.append((time.monotonic() + float(asked.get("work_ms", 0)) / 1000, number))
        elif isinstance(event, h2.events.StreamReset):
            self.streams.pop(number)

    def answer(self, number, stream):
        asked = dict(parse_qsl(urlsplit(stream.pseudo[":path"]).query))
        if asked.get("early"):
            self.h2.send_headers(number, [(":status", "103"), ("link", "</a.css>; rel=preload")])
        status = asked.get("status", "200")
        content = b"x" * int(asked.get("size", 0)) or json.dumps({
            "server": words.name,
            "method": stream.pseudo[":method"],
            "target": stream.pseudo[":path"],
            "version": "HTTP/2",
            "fields": stream.fields,
            "body_bytes": stream.count,
            "body_sha256": stream.digest.hexdigest(),
            "trailers": stream.trailers,
        }).encode()
        fields = [(":status", status), ("x-served-by", words.name)]
        if status not in ("204", "304") and not asked.get("trailer"):
            fields.append(("content-length", str(len(content))))
        if stream.pseudo[":method"] == "HEAD" or status in ("204", "304"):
            self.h2.send_headers(number, fields, end_stream=True)
            self.streams.pop(number)
            return
        self.h2.send_headers(number, fields)
        stream.out += content
        stream.ending = True
        if asked.get("trailer"):
            stream.out_trailers = [("x-sum", str(len(content)))]

    def flush(self, number, stream):
        while stream.out:
            room = min(self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size)
            if room <= 0:
                return
            self.h2.send_data(number, bytes(stream.out[:room]))
            del stream.out[:room]
        if stream.ending:
            if stream.out_trailers:
                self.h2.send_headers(number, stream.out_trailers, end_stream=True)
            else:
                self.h2.end_stream(number)
            self.streams.pop(number)


host, port = words.address.rsplit(":", 1)
listener = socket.create_server((host, int(port)), backlog=1024)
while True:
    Connection(listener.accept()[0]).start()
