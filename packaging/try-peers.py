"""The servers of packaging/try: HTTPS on port 8443, and a name server on port 53 that knows one name.

  packaging/try-peers.py ADDRESS CERTIFICATE KEY
"""

import http.server
import socket
import ssl
import sys
import threading

NAME = b"\x03app\x07example\x00"
BODY = b"hello by TLS\n"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_):
        pass


def answer(query, address):
    """A record of the type A for the one name, and nothing for all others (RFC 1035)."""
    name = query[12 : query.index(b"\x00", 12) + 1]
    question = query[12 : 12 + len(name) + 4]
    is_known = name.lower() == NAME and question[-4:-2] == b"\x00\x01"
    flags = b"\x81\x80" if name.lower() == NAME else b"\x81\x83"
    head = query[:2] + flags + b"\x00\x01" + (b"\x00\x01" if is_known else b"\x00\x00") + bytes(4)
    record = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04" + socket.inet_aton(address)
    return head + question + (record if is_known else b"")


def serve_names(address):
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind((address, 53))
    while True:
        query, client = names.recvfrom(4096)
        names.sendto(answer(query, address), client)


def main():
    address, certificate, key = sys.argv[1:]
    threading.Thread(target=serve_names, args=(address,), daemon=True).start()
    server = http.server.ThreadingHTTPServer((address, 8443), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


main()
