"""What a run starts on loopback addresses 127.0.62.x: the servers, Weir before them, certificates."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "interop/peers"
INSTALLED = ROOT / "target/peers"
PYTHON = INSTALLED / "interop/bin/python3"
GO = INSTALLED / "bin/go-peer"
PACKAGES = ["grpcio==1.85.1", "grpcio-status==1.85.1", "h2==4.4.1", "httpx==0.28.1", "Hypercorn==0.18.0"]
COMMANDS = {  # command: what to install
    "curl": "Debian's curl", "nghttp": "Debian's nghttp2-client", "h2load": "Debian's nghttp2-client",
    "nghttpd": "Debian's nghttp2-server", "nginx": "Debian's nginx-light", "openssl": "Debian's openssl",
    "node": "Debian's nodejs (18 or later)", "java": "Debian's openjdk-17-jdk-headless", "go": "Go 1.25 or later",
}
BODY = bytes((n * 2_654_435_761 >> 24) & 255 for n in range(50_000)) * 100  # 5 MB
FRONT, ADMIN = "127.0.62.1", "127.0.62.1:9900"


class Missing(Exception):
    """Something is not installed; the text says what to do."""


def find(command):
    path = shutil.which(command, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/go/bin")
    if not path:
        raise Missing(f"{command} is not here: install {COMMANDS[command]}")
    return path


def install():
    """The venv and the program in Go, below target/peers; does nothing when both are fresh."""
    problems = []
    for command in COMMANDS:
        try:
            find(command)
        except Missing as why:
            problems.append(str(why))
    wanted, stamp = " ".join(PACKAGES), INSTALLED / "interop/packages"
    if not stamp.exists() or stamp.read_text() != wanted:
        INSTALLED.mkdir(parents=True, exist_ok=True)
        # Not `python3` from PATH: pyenv's and others' come without venv now and then.
        python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"
        for step in ([python, "-m", "venv", INSTALLED / "interop"],
                     [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]):
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode:
                problems.append(f"Python's packages ({wanted}) could not be installed from PyPI into "
                                f"{INSTALLED}/interop; Debian's python3-venv is needed: {done.stderr.strip()[-300:]}")
                break
        else:
            stamp.write_text(wanted)
    if not any(problem.startswith("go ") for problem in problems):
        done = subprocess.run([find("go"), "build", "-o", GO, "."], cwd=PEERS / "go", capture_output=True, text=True,
                              env={**os.environ, "GOFLAGS": "-mod=mod"}, check=False)
        if done.returncode:
            problems.append(f"the peer in Go could not be built: {done.stderr.strip()[-300:]}")
    if problems:
        raise Missing("\n".join(problems))


def wait_for_port(address, process, what):
    host, port = address.rsplit(":", 1)
    until = time.monotonic() + 20
    while True:
        try:
            socket.create_connection((host, int(port)), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{what} does not listen on {address}; its output is in {ROOT}/target/interop") from None
            time.sleep(0.05)


class Server:
    """One process of an implementation: HTTP/2 in clear text and over TLS, in Go also HTTP/1.1."""

    def __init__(self, scene, kind, host):
        self.scene, self.kind, self.host = scene, kind, host
        self.clear, self.tls, self.h1 = f"{host}:8080", f"{host}:8443", f"{host}:8081"
        self.processes = []

    def commands(self):
        scene, folder = self.scene, self.scene.folder
        common = ["--body", folder / "www/large", "--chain", folder / "chain.pem", "--key", folder / "key.pem"]
        both = ["--clear", self.clear, "--tls", self.tls, *common]
        if self.kind == "nghttpd":
            files = ["-d", folder / "www", "--echo-upload", "--trailer=x-sum: 6", "-a", self.host]
            return [[find("nghttpd"), "--no-tls", *files, "8080"],
                    [find("nghttpd"), *files, "8443", folder / "key.pem", folder / "chain.pem"]]
        if self.kind == "nginx":
            return [[find("nginx"), "-p", scene.nginx_folder(self), "-c", "nginx.conf"]]
        return [{
            "go": [GO, "server", "--h1", self.h1, *both],
            "node": [find("node"), PEERS / "node_server.mjs", *both],
            "hypercorn": [PYTHON, PEERS / "hypercorn_server.py", *both],
            "grpc-go": [GO, "grpc-server", *both],
            "grpcio": [PYTHON, PEERS / "grpcio_server.py", *both],
        }[self.kind]]

    def start(self):
        name = f"{self.kind}-{self.host}"
        self.processes = [self.scene.spawn(name, command) for command in self.commands()]
        for address in (self.clear, self.tls):
            wait_for_port(address, self.processes[0], name)

    def end_gracefully(self):
        """Sends the signal for a graceful shutdown, and returns at once."""
        for process in self.processes:
            process.send_signal(signal.SIGQUIT if self.kind == "nginx" else signal.SIGTERM)

    def restart(self):
        for process in self.processes:
            self.scene.stop(process)
        self.start()


class Scene:
    def __init__(self, folder):
        self.folder = folder
        self.running = []
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "www").mkdir(parents=True)
        folder.chmod(0o755)
        (folder / "www/large").write_bytes(BODY)
        for name in ("small", "wait", "trailers"):
            (folder / "www" / name).write_text("hello\n")
        self.certificates()

    def spawn(self, name, command):
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.running.append(process)
        return process

    def stop(self, process, grace=6):
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(grace)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process in self.running:
            self.running.remove(process)

    def close(self):
        for process in self.running:
            if process.poll() is None:
                process.terminate()
        for process in list(self.running):
            self.stop(process, grace=3)

    def certificates(self):
        """An authority, and a certificate for every address that is used."""
        folder, openssl = self.folder, find("openssl")
        names = ",".join(f"IP:127.0.62.{n}" for n in range(1, 100))
        (folder / "extensions").write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n")
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        for words in (
            ["req", "-x509", *curve, "-days", "2", "-subj", "/CN=interop authority", "-keyout", "ca.key", "-out", "ca.pem"],
            ["req", "-new", *curve, "-subj", "/CN=interop", "-keyout", "key.pem", "-out", "request.pem"],
            ["x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
             "-extfile", "extensions", "-out", "chain.pem"],
        ):
            subprocess.run([openssl, *words], cwd=folder, capture_output=True, check=True)

    def nginx_folder(self, server):
        folder = self.folder / f"nginx-{server.host}"
        folder.mkdir(exist_ok=True)
        text = (PEERS / "nginx.conf").read_text()
        fills = {"folder": folder, "www": self.folder / "www", "chain": self.folder / "chain.pem",
                 "key": self.folder / "key.pem", "clear": server.clear, "tls": server.tls, "h1": "127.0.62.10:8081"}
        for name, value in fills.items():
            text = text.replace("{" + name + "}", str(value))
        (folder / "nginx.conf").write_text(text)
        return folder

    def start_weir(self, program, services):
        """services: (name, transport, servers); gRPC's have a listener each, as their paths are fixed."""
        pair = f'{{ chain = "{self.folder}/chain.pem", key = "{self.folder}/key.pem" }}'
        text = [f'workers = 2\n[admin]\naddress = "{ADMIN}"\n']
        fronts = {}

        def listener(name, port, tls):
            fronts[name] = f"{FRONT}:{port}"
            text.append(f'[[listener]]\nname = "{name}"\naddress = "{FRONT}:{port}"\n')
            if tls:
                text.append(f"tls = {{ certificates = [{pair}] }}\n")
        listener("http", 8080, False)
        listener("https", 8443, True)
        for n, (name, transport, servers) in enumerate(services):
            if name.startswith("grpc"):
                for scheme in ("http", "https"):
                    listener(f"{name}-{scheme}", 9000 + 2 * n + (scheme == "https"), scheme == "https")
                    text.append(f'[[route]]\nlistener = "{name}-{scheme}"\nservice = "{name}"\n')
            else:
                text.append(f'[[route]]\npath = "/{name}/"\nservice = "{name}"\nrewrite = {{ prefix = "/" }}\n')
            text.append(f"[service.{name}]\n")
            if transport != "h1":
                text.append('http = "2"\n')
            if transport == "tls":
                text.append(f'tls = {{ ca = "{self.folder}/ca.pem" }}\n')
            for server in servers:
                address = {"h1": server.h1, "h2c": server.clear, "tls": server.tls}[transport]
                text.append(f'[[service.{name}.server]]\naddress = "{address}"\n')
        (self.folder / "weir.toml").write_text("".join(text))
        process = self.spawn("weir", [program, "serve", self.folder / "weir.toml"])
        for front in fronts.values():
            wait_for_port(front, process, "weir")
        return fronts
