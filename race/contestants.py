"""Who races: how each is configured, started, reloaded and stopped, and what the kernel says it used."""

import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TICKS = os.sysconf("SC_CLK_TCK")
# Open files that each of them, and the race itself, may hold.
FILES_MAX = 15_000

# Ports of the servers behind; those of a contestant follow from its place.
SERVER = {"server": 18080, "server_1": 18081, "server_2": 18082, "server_3": 18083,
          "server_4": 18084, "marker_1": 18085, "marker_2": 18086, "server_h2": 18087}
OWN_PORTS = ["http", "tls", "tcp", "limited", "logged", "admin", "pooled", "both", "gzip"]

# Template files of each kind, and its command line. `{folder}` holds what was made of them.
KINDS = {
    "weir": (["weir.toml"], "{program} serve {folder}/weir.toml"),
    "haproxy": (["haproxy.cfg", "haproxy-hosts.map"], "{program} -W -f {folder}/haproxy.cfg"),
    "nginx": (["nginx.conf"], "{program} -g 'daemon off;' -p {folder} -c {folder}/nginx.conf"),
    "envoy": (["envoy-listeners.yaml", "envoy-clusters.yaml", "envoy.yaml"],
              "{program} -c {folder}/envoy.yaml --concurrency {workers} --disable-hot-restart -l error"),
    "floor": ([], "{program} {http} {server}"),
}


class Missing(Exception):
    """Something that the race needs is not here; the text says what and what to do."""


def find(program):
    found = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not found:
        raise Missing(f"{program} is not here; race/install installs what Debian and PyPI have, "
                      "`cargo build --release` makes Weir")
    return found


def fill(text, values, services):
    """A template's text with @name@ replaced, and what stands between `#each service` and `#end`
    once for each service."""
    def repeat(block):
        return "".join(block[1].replace("@n@", f"{n}") for n in range(services))
    text = re.sub(r"(?ms)^[ \t]*#each service\n(.*?)^[ \t]*#end\n", repeat, text)
    return re.sub(r"@(\w+)@", lambda name: str(values[name[1]]), text)


class Contestant:
    """A program under load; `start` and `stop` may be called again and again."""

    def __init__(self, name, kind, program, place, core):
        self.name, self.kind, self.core = name, kind, core
        self.program = find(program)
        base = 18100 + 20 * place
        self.ports = {port: base + at for at, port in enumerate(OWN_PORTS)}
        self.process = self.extra = None
        self.folder = None

    def version(self):
        word = {"weir": ["--version"], "haproxy": ["-v"], "nginx": ["-v"], "envoy": ["--version"]}.get(self.kind)
        if not word:
            return "epoll, copies only"
        said = subprocess.run([self.program, *word], capture_output=True, text=True)
        found = re.search(r"(\d+\.\d+\.\d+[^\s/]*)", said.stdout + said.stderr)
        return found[1] if found else "?"

    def write(self, folder, services=0, marker="marker_1", workers=1, logged=False):
        """Writes its configuration below `folder`; each file is replaced in one step."""
        self.folder = pathlib.Path(folder) / self.name
        self.folder.mkdir(exist_ok=True)
        for pem in ("both.pem", "chain.pem", "key.pem"):
            shutil.copy(pathlib.Path(folder) / pem, self.folder / pem)
        access_log = str(self.folder / "access.log") if logged else "off"
        self.values = {**SERVER, **self.ports, "folder": self.folder, "workers": workers,
                       "program": self.program, "marker": SERVER[marker], "access_log": access_log}
        for template in KINDS[self.kind][0]:
            text = fill((HERE / "peers" / template).read_text(), self.values, services)
            new = self.folder / f".{template}"
            new.write_text(text)
            new.rename(self.folder / template)

    def start(self, pinned=True):
        words = shlex.split(KINDS[self.kind][1].format(**self.values))
        pin = ["taskset", "-c", self.core] if pinned else []
        self.log = open(self.folder / "said.txt", "a")
        self.process = subprocess.Popen([*pin, *words], stdout=self.log, stderr=self.log,
                                        start_new_session=True)
        if self.kind == "floor":
            self.extra = subprocess.Popen(
                [*pin, self.program, str(self.ports["pooled"]), str(SERVER["server"]), "pooled"],
                stdout=self.log, stderr=self.log)

    def reload(self):
        """Asks it to take its files as they are now; Envoy watches its own."""
        if self.kind == "haproxy":
            self.process.send_signal(signal.SIGUSR2)
        elif self.kind in ("nginx", "weir"):
            self.process.send_signal(signal.SIGHUP)

    def pids(self):
        """Its processes, children and theirs included."""
        found, todo = [], [one.pid for one in (self.process, self.extra) if one]
        while todo:
            pid = todo.pop()
            found.append(pid)
            try:
                for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                    todo += [int(child) for child in task.read_text().split()]
            except OSError:
                pass  # it has ended meanwhile
        return found

    def cpu_seconds(self):
        """User and system time of all its processes, by the clock tick; and both together, to the
        nanosecond, by the scheduler."""
        user = system = total = 0.0
        for pid in self.pids():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            user += int(fields[11]) / TICKS
            system += int(fields[12]) / TICKS
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                try:
                    total += int((task / "schedstat").read_text().split()[0]) / 1e9
                except OSError:
                    pass  # the thread has ended
        return user, system, total

    def memory_kb(self):
        """What it holds now (PSS: shared pages divided among those that share them)."""
        return sum(self._number(pid, "smaps_rollup", "Pss") for pid in self.pids())

    def peak_kb(self):
        """The most that its processes have held since `forget_peak`; what several of them share is
        counted for each."""
        return sum(self._number(pid, "status", "VmHWM") for pid in self.pids())

    def forget_peak(self):
        for pid in self.pids():
            pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")

    @staticmethod
    def _number(pid, file, name):
        try:
            text = pathlib.Path(f"/proc/{pid}/{file}").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return 0  # it has ended meanwhile: the old half of a reload
        found = re.search(rf"^{name}:\s+(\d+)", text, re.M)
        return int(found[1]) if found else 0

    def check_alive(self):
        if self.process.poll() is not None:
            said = (self.folder / "said.txt").read_text().strip().splitlines()
            raise Missing(f"{self.name} has ended: {said[-1] if said else 'it said nothing'}")

    def stop(self):
        # First the one that would restart others.
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in (self.process, self.extra):
            if process:
                process.wait()
        self.process = self.extra = None


def wait_until(ready, what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if ready():
            return
        time.sleep(0.01)
    raise Missing(f"{what} was not ready within {seconds} s")
