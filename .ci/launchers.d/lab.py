"""What the tests under launchers share: commands, services that end with the test, network namespaces as hosts."""

import atexit
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

DOSMOS = pathlib.Path(os.environ.get("DOSMOS", "target/debug/dosmos")).resolve()
# Until when what is awaited must be there: generous, for machines with much to do.
DEADLINE_S = 120
# Of a run whose hosts share no directory.
TOKEN = "0123456789abcdef" * 2


class Failed(Exception):
    pass


def wait_for(what, condition):
    """The first true result of `condition`."""
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise Failed(f"{what}: not within {DEADLINE_S} s")


def check(what, got, want):
    if got != want:
        raise Failed(f"{what}: {got!r}, not {want!r}")


def contains(what, text, part):
    if part not in text:
        raise Failed(f"{what}: {part!r} is not in\n{text}")


class Lab:
    """A directory, and processes that end with the test."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dosmos-launchers-"))
        self.services = []
        self.undo = []
        atexit.register(self.close)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for service in reversed(self.services):
            stop(service)
        self.services = []
        for undo in reversed(self.undo):
            subprocess.run(undo, capture_output=True)
        self.undo = []
        shutil.rmtree(self.dir, ignore_errors=True)

    def write(self, name, text):
        path = self.dir / name
        path.write_text(text)
        return path

    def run(self, command, ok=True, env=None, cwd=None, stdin=None):
        """Runs a command to its end; its status and what it printed."""
        everything = {**os.environ, **(env or {})}
        started = subprocess.Popen(
            [str(word) for word in command], cwd=cwd or self.dir, env=everything, text=True, start_new_session=True,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said, _ = started.communicate(stdin, timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            stop(started)
            raise Failed(f"{command}: not within {DEADLINE_S} s: {started.communicate()[0]}") from None
        if ok is not None and (started.returncode == 0) != ok:
            raise Failed(f"{command}: exit status {started.returncode}\n{said}")
        return started.returncode, said

    def start(self, command, log, env=None, stdin=subprocess.DEVNULL):
        """Starts a service, which ends with the test."""
        out = open(self.dir / log, "w")
        service = subprocess.Popen(
            [str(word) for word in command], cwd=self.dir, env={**os.environ, **(env or {})}, start_new_session=True,
            stdin=stdin, stdout=out, stderr=subprocess.STDOUT)
        self.services.append(service)
        return service

    def none_ended(self):
        for service in self.services:
            if service.poll() is not None:
                raise Failed(f"{service.args} ended: {service.returncode}")

    def said(self, log):
        path = self.dir / log
        return path.read_text(errors="replace") if path.exists() else ""

    def dosmos(self, *args, ok=True, at=(), env=None):
        return self.run([*at, DOSMOS, *args], ok=ok, env=env)[1]

    def query(self, *args, at=(), env=None):
        said = subprocess.run([str(w) for w in [*at, DOSMOS, "query", *args, "--format", "json"]], cwd=self.dir,
                              env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=DEADLINE_S)
        check(f"query {args}: {said.stderr}", said.returncode, 0)
        return json.loads(said.stdout)

    def listed(self, run_dir):
        """What `dosmos runs` says of a run."""
        run_dir = (self.dir / run_dir).resolve()
        said = subprocess.run([DOSMOS, "runs", run_dir.parent, "--format", "json"], capture_output=True, text=True, timeout=DEADLINE_S)
        mine = [r for r in json.loads(said.stdout)["runs"] if r["name"] == run_dir.name]
        check(f"{run_dir} is listed", len(mine), 1)
        return mine[0]

    def ends(self, run_dir):
        """How each application process of a run ended: (host, exit) by name."""
        return {rank["name"]: (rank["host"], rank["exit"]) for rank in self.listed(run_dir)["run"]["ranks"]}

    def run_is_whole(self, run_dir, hosts):
        """A run in which as many application processes on each host ended well: complete and consistent."""
        run = self.listed(run_dir)
        check("complete", (run["complete"], run["lacking"]), (True, []))
        ran = collections.Counter(host for host, exit in self.ends(run_dir).values() if exit == {"code": 0})
        check("ended well", dict(ran), hosts)
        check("hosts", sorted(run["run"]["hosts"]), sorted(hosts))
        self.dosmos("verify", "--run-dir", run_dir)
        self.dosmos("check", "--run-dir", run_dir, "--fail-on", "deadlock")


def stop(process):
    """Ends a process and all that it started; kills what takes too long."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            break
        try:
            process.wait(10)
            # Others of the group.
            time.sleep(0.1)
        except subprocess.TimeoutExpired:
            pass
    process.wait()


class Net:
    """Hosts: network namespaces with names of their own, all at one switch."""

    def __init__(self, lab, names, prefix="10.77.0"):
        self.lab = lab
        self.tag = f"dl{os.getpid() % 100000}"
        self.switch = f"{self.tag}-sw"
        self.names = list(names)
        self._ns(self.switch)
        self._ip("-n", self.switch, "link", "add", "sw", "type", "bridge")
        self._ip("-n", self.switch, "link", "set", "sw", "up")
        self.address = {}
        for number, name in enumerate(self.names, 1):
            ns = self.ns(name)
            self._ns(ns)
            self._ip("-n", ns, "link", "set", "lo", "up")
            self._ip("-n", self.switch, "link", "add", f"p{number}", "type", "veth", "peer", "name", "eth0", "netns", ns)
            self._ip("-n", self.switch, "link", "set", f"p{number}", "master", "sw")
            self._ip("-n", self.switch, "link", "set", f"p{number}", "up")
            self.address[name] = f"{prefix}.{number}"
            self._ip("-n", ns, "address", "add", f"{prefix}.{number}/24", "dev", "eth0")
            self._ip("-n", ns, "link", "set", "eth0", "up")
        hosts = "127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for n, a in self.address.items())
        for name in self.names:
            # Files there stand in for those of /etc in the namespace.
            etc = pathlib.Path("/etc/netns") / self.ns(name)
            etc.mkdir(parents=True)
            self.lab.undo.append(["rm", "-r", str(etc)])
            (etc / "hosts").write_text(hosts)

    def _ns(self, ns):
        self._ip("netns", "add", ns)
        self.lab.undo.append(["ip", "netns", "del", ns])

    def _ip(self, *args):
        done = subprocess.run(["ip", *args], capture_output=True, text=True)
        check(f"ip {args}: {done.stderr}", done.returncode, 0)

    def ns(self, name):
        return f"{self.tag}-{name}"

    def at(self, name):
        """What a command begins with that runs on this host."""
        return ["ip", "netns", "exec", self.ns(name), "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', name]

    def link(self, name, up):
        number = self.names.index(name) + 1
        self._ip("-n", self.switch, "link", "set", f"p{number}", "up" if up else "down")


def has_namespaces():
    """Why network namespaces cannot be made here; nothing if they can."""
    if not shutil.which("ip"):
        return "no ip(8) here (Debian package iproute2)"
    name = f"dosmos-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode:
        return f"network namespaces cannot be made here: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name])
    return None
