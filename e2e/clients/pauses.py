"""Asks over one TLS connection again and again, silent in between: HOST:PORT SECONDS TIMES.
Prints the status of each answer."""

import http.client
import ssl
import sys
import time

address, seconds, times = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
host, port = address.rsplit(":", 1)
connection = http.client.HTTPSConnection(host, int(port), timeout=10, context=context)
connection.connect()
first = connection.sock
for number in range(times):
    connection.request("GET", "/")
    answer = connection.getresponse()
    answer.read()
    assert connection.sock is first, f"the connection ended after answer {number + 1}"
    print(answer.status)
    time.sleep(seconds)
