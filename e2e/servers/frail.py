#!/usr/bin/env python3
"""A server that works, and that a request can make fail: the same request fails on each such
server. HTTP/1.1, or with --http2 HTTP/2 with prior knowledge; a thread for each connection.

What the end of the path asks for:
  good       an answer of 200, once the body is there
  error      500;  slowfail: 500 after 300 ms;  early: 503 before the body is there
  crash      the connection is closed without an answer
  hang       no answer for 5 s
  big        100 kB
  malformed  what is no response
  switch     an unrequested 101 (HTTP/2: as malformed)
  v505       505
  unread     the body is not read (HTTP/2: its window is not given back) for 6 s
  patient    as good, and the body may take 10 s
Another method than GET, HEAD, POST and PUT is answered with 501. A body that is not there 1.5 s
after its head, and a head of more than 8 kB, end the connection.
"""

import argparse
import socket
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions

# Longer than it takes Weir to name the client that keeps a body back (1 s).
BODY_WITHIN_S = 1.5
PATIENT_S = 10.0
UNREAD_S = 6.0
HEAD_MAX = 8192
METHODS = ("GET", "HEAD", "POST", "PUT")

words = argparse.ArgumentParser()
words.add_argument("--address", required=True)
words.add_argument("--http2", action="store_true")
words = words.parse_args()


class Ended(Exception):
    pass


def asked(target):
    return target.split("?")[0].rsplit("/", 1)[-1]


def outcome(method, what):
    """Status and body of an answer; ends the connection where that is asked for."""
    if method not in METHODS:
        return 501, b""
    if what in ("crash", "malformed", "switch"):
        raise Ended
    if what == "hang":
        time.sleep(5)
    if what == "slowfail":
        time.sleep(0.3)
    status = {"error": 500, "slowfail": 500, "v505": 505}.get(what, 200)
    return status, b"x" * (100_000 if what == "big" else 4)


class Http1:
    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""

    def more(self):
        data = self.sock.recv(65536)
        if not data:
            raise Ended
        self.buffer += data

    def serve(self):
        while True:
            self.sock.settimeout(60)
            while b"\r\n\r\n" not in self.buffer:
                if len(self.buffer) > HEAD_MAX:
                    raise Ended
                self.more()
            head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
            if len(head) > HEAD_MAX:
                raise Ended
            self.request(head.decode("latin-1"))

    def request(self, head):
        lines = head.split("\r\n")
        method, target, _ = lines[0].split(" ")
        fields = {k.strip().lower(): v.strip() for k, _, v in (l.partition(":") for l in lines[1:])}
        what = asked(target)
        if what == "early":
            self.answer(503, b"no\n")
            raise Ended
        if what == "unread":
            time.sleep(UNREAD_S)
        self.body(fields, PATIENT_S if what == "patient" else BODY_WITHIN_S)
        if what == "malformed":
            self.sock.sendall(b"HTTP/1.1 banana\r\n\r\n")
            raise Ended
        if what == "switch":
            self.sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
            raise Ended
        self.answer(*outcome(method, what))

    def body(self, fields, patience):
        self.sock.settimeout(patience)
        until = time.monotonic() + patience

        def there(enough):
            while not enough():
                if time.monotonic() > until:
                    raise Ended
                self.more()

        if "chunked" in fields.get("transfer-encoding", ""):
            there(lambda: self.buffer.endswith(b"0\r\n\r\n"))
            self.buffer = b""
            return
        length = int(fields.get("content-length", 0))
        there(lambda: len(self.buffer) >= length)
        self.buffer = self.buffer[length:]

    def answer(self, status, body):
        head = f"HTTP/1.1 {status} Whatever\r\nContent-Length: {len(body)}\r\n\r\n"
        self.sock.sendall(head.encode() + body)


class Http2:
    def __init__(self, sock):
        self.sock = sock
        self.lock = threading.Lock()
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self.open = {}

    def serve(self):
        with self.lock:
            self.h2.initiate_connection()
            self.flush()
        while True:
            self.sock.settimeout(0.1)
            try:
                data = self.sock.recv(65536)
                if not data:
                    raise Ended
            except TimeoutError:
                data = b""
            with self.lock:
                for event in self.h2.receive_data(data) if data else ():
                    self.handle(event)
                self.flush()
            now = time.monotonic()
            late = [one for one in self.open.values() if not one["ended"] and now > one["until"]]
            if late:
                raise Ended

    def flush(self):
        self.sock.sendall(self.h2.data_to_send())

    def handle(self, event):
        number = getattr(event, "stream_id", None)
        if isinstance(event, h2.events.RequestReceived):
            fields = {bytes(k).decode(): bytes(v).decode("latin-1") for k, v in event.headers}
            if sum(len(k) + len(v) for k, v in fields.items()) > HEAD_MAX:
                raise Ended
            what = asked(fields[":path"])
            patience = {"unread": UNREAD_S, "patient": PATIENT_S}.get(what, BODY_WITHIN_S)
            until = time.monotonic() + patience
            self.open[number] = {"method": fields[":method"], "what": what, "until": until, "ended": False}
            if what == "early":
                self.respond(number, 503, b"no\n")
        elif isinstance(event, h2.events.DataReceived):
            if self.open.get(number, {}).get("what") != "unread":
                self.h2.acknowledge_received_data(event.flow_controlled_length, number)
        elif isinstance(event, h2.events.StreamEnded) and number in self.open:
            one = self.open[number]
            one["ended"] = True
            if one["method"] in METHODS and one["what"] in ("crash", "malformed", "switch"):
                raise Ended
            threading.Thread(target=self.work, args=(number, one), daemon=True).start()
        elif isinstance(event, h2.events.StreamReset):
            self.open.pop(number, None)

    def work(self, number, one):
        status, body = outcome(one["method"], one["what"])
        with self.lock:
            if number in self.open:
                try:
                    self.respond(number, status, body)
                    self.flush()
                except (OSError, h2.exceptions.ProtocolError):
                    pass

    def respond(self, number, status, body):
        self.open.pop(number, None)
        self.h2.send_headers(number, [(":status", str(status)), ("content-length", str(len(body)))])
        # What the window does not take is dropped: it is not read here.
        room = self.h2.local_flow_control_window(number)
        if len(body) > room:
            self.h2.reset_stream(number)
            return
        size = self.h2.max_outbound_frame_size
        for at in range(0, len(body), size):
            self.h2.send_data(number, body[at:at + size])
        self.h2.end_stream(number)


def run(sock):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        (Http2 if words.http2 else Http1)(sock).serve()
    except (Ended, OSError, h2.exceptions.ProtocolError, ValueError):
        pass
    sock.close()


host, port = words.address.rsplit(":", 1)
listener = socket.create_server((host, int(port)), backlog=1024)
while True:
    threading.Thread(target=run, args=(listener.accept()[0],), daemon=True).start()
