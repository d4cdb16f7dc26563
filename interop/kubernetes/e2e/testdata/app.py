#!/usr/bin/env python3
"""The program of the tests' Pods. Each path does or shows one thing; see the tests."""

import http.server
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

HEALTH = {"ready": os.environ.get("READY", "yes"), "live": "yes"}
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def read(path):
    with open(path) as file:
        return file.read()


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def api(path):
    """Asks the API server as a client in a cluster does, and returns the status."""
    host = os.environ["KUBERNETES_SERVICE_HOST"] + ":" + os.environ["KUBERNETES_SERVICE_PORT"]
    request = urllib.request.Request(f"https://{host}{path}")
    request.add_header("Authorization", "Bearer " + read(ACCOUNT + "/token"))
    trusted = ssl.create_default_context(cafile=ACCOUNT + "/ca.crt")
    try:
        with urllib.request.urlopen(request, timeout=5, context=trusted) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def zombies():
    """Leaves an orphan that ends, and returns the processes that no parent has waited for."""
    subprocess.run(["sh", "-c", "sleep 0.1 &"], check=True)
    time.sleep(0.5)
    states = {}
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit():
                states[entry] = read(f"/proc/{entry}/stat").rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            pass
    return {"zombies": [p for p, state in states.items() if state == "Z"], "processes": len(states)}


def me():
    status = dict(line.split(":\t", 1) for line in read("/proc/self/status").splitlines() if ":\t" in line)
    return {
        "uid": os.getuid(), "gid": os.getgid(), "capabilities": status["CapEff"], "hostname": socket.gethostname(),
        "address": socket.gethostbyname(socket.gethostname()), "argv": sys.argv, "env": dict(os.environ),
        "directory": os.getcwd(), "pid": os.getpid(),
    }


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        status, answer = 200, None
        match url.path:
            case "/ready" | "/live":
                status = 200 if HEALTH[url.path[1:]] == "yes" else 503
            case "/set":
                HEALTH.update(query)
            case "/exit":
                threading.Timer(0.1, lambda: os._exit(int(query["code"]))).start()
            case "/me":
                answer = me()
            case "/file":
                answer = read(query["path"])
            case "/write":
                with open(query["path"], "w") as file:
                    file.write(query["text"])
            case "/fetch":
                answer = fetch(query["url"])
            case "/api":
                answer = api(query["path"])
            case "/zombies":
                answer = zombies()
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def terminate(*_):
    print("got SIGTERM", flush=True)
    wait = float(os.environ.get("DRAIN", "0"))
    # -1: ignores the signal.
    if wait >= 0:
        time.sleep(wait)
        print("drained", flush=True)
        os._exit(0)


signal.signal(signal.SIGTERM, terminate)
server = http.server.ThreadingHTTPServer(("", int(os.environ.get("PORT", "8080"))), Handler)
server.serve_forever()
