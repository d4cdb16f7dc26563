"""A WSGI application that counts how often it is asked to do each thing, for uWSGI or any other
WSGI server with one process. A POST's X-Id says what to do; the answer repeats it, with a
Content-Length. GET /-/stats: {"requests", "distinct", "duplicates"}."""

import json
import threading

lock = threading.Lock()
seen = set()
requests = 0


def application(environ, start_response):
    global requests
    if environ["PATH_INFO"] == "/-/stats":
        with lock:
            numbers = {"requests": requests, "distinct": len(seen)}
        numbers["duplicates"] = numbers["requests"] - numbers["distinct"]
        body = json.dumps(numbers).encode()
    else:
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        body = environ.get("HTTP_X_ID", "").encode()
        if environ["REQUEST_METHOD"] == "POST":
            with lock:
                requests += 1
                seen.add(body)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
