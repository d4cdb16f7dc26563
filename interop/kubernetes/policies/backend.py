"""A backend for scripts/kubernetes-policies, in a Pod. It listens on two ports, since limits belong to an address and port.

/slow, /second  takes 200 ms
/most           the largest number of slow requests at a time since the last such question
/verify         an authentication server: the ticket `valid` is that of carol
/large          a text that is worth compressing
others          the fields of the request, in JSON
"""

import http.server
import json
import threading
import time

PORTS = (8080, 8081)
WORK_S = 0.2

lock = threading.Lock()
concurrent = most = 0


def work():
    global concurrent, most
    with lock:
        concurrent += 1
        most = max(most, concurrent)
    time.sleep(WORK_S)
    # Before the response, after which the next request may come.
    with lock:
        concurrent -= 1
    return ""


def take_most():
    global most
    with lock:
        taken, most = most, concurrent
    return str(taken)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A response is one write.
    wbufsize = -1

    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/verify":
            is_valid = self.headers.get("X-Ticket") == "valid"
            self.answer("", 200 if is_valid else 401, {"X-User": "carol"} if is_valid else {})
        elif path in ("/slow", "/second"):
            self.answer(work())
        elif path == "/most":
            self.answer(take_most())
        elif path == "/large":
            self.answer("compress this. " * 1000)
        else:
            self.answer(json.dumps({name.lower(): value for name, value in self.headers.items()}))

    def answer(self, text, status=200, fields=None):
        body = text.encode()
        self.send_response(status)
        for name, value in (fields or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


for port in PORTS:
    threading.Thread(target=Server(("", port), Handler).serve_forever).start()
