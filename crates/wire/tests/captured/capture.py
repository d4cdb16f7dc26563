#!/usr/bin/env python3
"""Captures what real programs send first on a TCP connection, for the tests of `wire`.

Usage: capture.py [PYTHON]   (PYTHON: an interpreter with curl_cffi, for the browsers' hellos)

Writes client_hello/NAME.bin, the first flight of TLS clients, and proxy_protocol/NAME.bin, the
PROXY headers of HAProxy, beside this file. Everything happens on loopback. Needs openssl, curl,
go, node and haproxy; what is missing is skipped and said.
"""
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LONG = ",".join(f"protocol-{n:03}" for n in range(60))


def first_bytes(listener):
    """What arrives before the peer waits for an answer."""
    listener.settimeout(20)
    peer, _ = listener.accept()
    peer.settimeout(0.5)
    data = b""
    try:
        while piece := peer.recv(65536):
            data += piece
    except (TimeoutError, ConnectionResetError):
        pass
    peer.close()
    return data


def listen(family=socket.AF_INET, address="127.0.0.1"):
    listener = socket.create_server((address, 0), family=family)
    return listener, listener.getsockname()[1]


def save(folder, name, data):
    if not data:
        print(f"nothing came: {folder}/{name}", file=sys.stderr)
        return
    os.makedirs(os.path.join(HERE, folder), exist_ok=True)
    with open(os.path.join(HERE, folder, name + ".bin"), "wb") as file:
        file.write(data)
    print(f"{folder}/{name}.bin: {len(data)} bytes")


def hello(name, command):
    """Runs `command` with PORT replaced against a listener that never answers."""
    if not shutil.which(command[0]):
        print(f"no {command[0]}: {name} skipped", file=sys.stderr)
        return
    listener, port = listen()
    command = [word.replace("PORT", str(port)) for word in command]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    try:
        save("client_hello", name, first_bytes(listener))
    except TimeoutError:
        print(f"{command[0]} did not connect: {name}", file=sys.stderr)
    child.kill()
    child.wait()
    listener.close()


def hello_python(name, context, server_name):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=server_name)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    save("client_hello", name, outgoing.read())


def hellos(python):
    s_client = ["openssl", "s_client", "-connect", "127.0.0.1:PORT"]
    hello("openssl_tls13", [*s_client, "-servername", "www.Example.com", "-alpn", "h2,http/1.1"])
    hello("openssl_tls12", [*s_client, "-servername", "old.example.com", "-tls1_2"])
    hello("openssl_no_name", [*s_client, "-noservername"])
    hello("openssl_address", [*s_client, "-servername", "192.0.2.1"])
    hello("openssl_two_records", [*s_client, "-servername", "split.example.com", "-alpn", LONG,
                                  "-max_send_frag", "512"])
    curl = ["curl", "-sk", "--resolve", "curl.example.com:PORT:127.0.0.1"]
    hello("curl_http2", [*curl, "--http2", "https://curl.example.com:PORT/"])
    hello("curl_no_alpn", [*curl, "--no-alpn", "https://curl.example.com:PORT/"])
    hello("node", ["node", "-e", "require('tls').connect({host:'127.0.0.1',port:PORT,"
                   "servername:'node.example.com',ALPNProtocols:['http/1.1']})"])
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    hello_python("python", context, "xn--bcher-kva.example.com")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "main.go"), "w") as file:
            file.write('package main\nimport ("crypto/tls"; "os")\nfunc main() {\n'
                       'tls.Dial("tcp", "127.0.0.1:" + os.Args[1], &tls.Config{'
                       'ServerName: "go.example.com", NextProtos: []string{"h2"}})\n}\n')
        if shutil.which("go"):
            program = os.path.join(folder, "main")
            subprocess.run(["go", "build", "-o", program, file.name], check=True)
            hello("go", [program, "PORT"])
    for browser in ("chrome", "firefox", "safari"):
        script = ("import curl_cffi.requests as r; r.get('https://browser.example.com:PORT/', "
                  "impersonate=%r, verify=False, timeout=5, curl_options={"
                  "__import__('curl_cffi').CurlOpt.RESOLVE: [b'browser.example.com:PORT:127.0.0.1']})"
                  % browser)
        hello("like_" + browser, [python, "-c", script])


def haproxy(name, bind, server_options, connect, family=socket.AF_INET, address="127.0.0.1"):
    """The first bytes that HAProxy sends to its server for a client made by `connect`."""
    listener, port = listen(family, address)
    front, front_port = listen(family, address)
    front.close()
    target = f"[{address}]" if ":" in address else address
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
        file.write(f"""
defaults
    mode tcp
    timeout client 5s
    timeout server 5s
    timeout connect 5s
frontend f
    bind {target}:{front_port} {bind}
    unique-id-format %{{+X}}o\\ %ci:%cp_%fi:%fp_%Ts_%rt
    default_backend b
backend b
    server s {target}:{port} {server_options}
""")
        file.flush()
        child = subprocess.Popen(["haproxy", "-db", "-q", "-f", file.name])
        client = None
        for _ in range(100):
            try:
                client = connect(address, front_port)
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        try:
            save("proxy_protocol", name, first_bytes(listener))
        except TimeoutError:
            print(f"HAProxy did not connect: {name}", file=sys.stderr)
        if client:
            client.close()
        child.kill()
        child.wait()
    listener.close()


def proxy_headers():
    if not shutil.which("haproxy"):
        print("no haproxy: its headers are skipped", file=sys.stderr)
        return

    def plain(address, port):
        client = socket.create_connection((address, port))
        client.sendall(b"GET / HTTP/1.1\r\n")
        return client

    haproxy("haproxy_v1", "", "send-proxy", plain)
    haproxy("haproxy_v1_ipv6", "", "send-proxy", plain, socket.AF_INET6, "::1")
    haproxy("haproxy_v2", "", "send-proxy-v2", plain)
    haproxy("haproxy_v2_ipv6", "", "send-proxy-v2 proxy-v2-options crc32c,unique-id", plain,
            socket.AF_INET6, "::1")
    haproxy("haproxy_v2_check", "", "send-proxy-v2 check inter 1s\n    option httpchk", lambda *_: None)
    with tempfile.TemporaryDirectory() as folder:
        both = os.path.join(folder, "both.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=a client", "-keyout", both + ".key", "-out", both + ".crt"],
                       check=True, stderr=subprocess.DEVNULL)
        with open(both, "w") as file:
            file.write(open(both + ".crt").read() + open(both + ".key").read())
        context = ssl.create_default_context(cafile=both + ".crt")
        context.check_hostname = False
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(both)

        def tls(address, port):
            client = context.wrap_socket(plain_socket(address, port),
                                         server_hostname="www.example.com")
            client.sendall(b"GET / HTTP/1.1\r\n")
            return client

        def plain_socket(address, port):
            return socket.create_connection((address, port))

        haproxy("haproxy_v2_tls", f"ssl crt {both} ca-file {both}.crt verify required alpn http/1.1",
                "send-proxy-v2 proxy-v2-options ssl,cert-cn,ssl-cipher,cert-sig,cert-key,"
                "authority,crc32c,unique-id", tls)


if __name__ == "__main__":
    if "--only-haproxy" not in sys.argv:
        hellos(sys.argv[1] if len(sys.argv) > 1 else sys.executable)
    proxy_headers()
