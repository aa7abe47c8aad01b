"""docs/guide/cluster.md, followed by the letter: its files are written and its commands run as they stand there.

A block of the document is run where the comment before it says: `<!-- run: every host -->`, `<!-- file: cluster.toml -->`.
"""

import pathlib
import re
import shutil
import subprocess

import slurm
from lab import DOSMOS, Failed, Lab, Net, check, contains, has_namespaces, wait_for

GUIDE = pathlib.Path("docs/guide/cluster.md")
BLOCK = re.compile(r"^<!-- (file|run): (.+?) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VERIFIED = "equal to a sequential run bit for bit"
# Every place in which the document has blocks; one that is not known here is an error.
PLACES = {"desk", "desk, meanwhile", "desk, in the background", "desk, when mp0 is there", "slurm", "mpirun", "every host",
          "every host, apart"}


class Skipped(Exception):
    pass


def followed():
    """docs/guide/cluster.md by the letter, on two hosts and under Slurm."""
    why = has_namespaces() or slurm.lacks() or (None if shutil.which("mpirun") else "mpirun (Debian package openmpi-bin)")
    if why:
        raise Skipped(f"missing: {why}")
    blocks = BLOCK.findall(GUIDE.read_text())
    check("blocks of unknown places", {where for kind, where, _ in blocks if kind == "run"} ^ PLACES, set())
    with Lab() as lab:
        net = Net(lab, ["north", "south", "desk"])
        bin_dir = lab.dir / "bin"
        bin_dir.mkdir()
        (bin_dir / "dosmos").symlink_to(DOSMOS)
        path = f"{bin_dir}:{subprocess.os.environ['PATH']}"
        env = {"PATH": path, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        cluster = slurm.Slurm(lab, net, ["north", "south"])
        Follower(lab, net, cluster, env).follow(blocks)
        host = {"north": 2, "south": 2}
        lab.run_is_whole("run1", host)
        (lab.dir / "all/store").mkdir(parents=True)
        for number, name in enumerate(("north", "south")):
            shutil.copytree(lab.dir / f"{name}/run3/store/emp{number}", lab.dir / f"all/store/emp{number}")
        lab.run_is_whole("all", host)


class Follower:
    def __init__(self, lab, net, cluster, env):
        self.lab, self.net, self.cluster, self.env = lab, net, cluster, env
        self.running, self.background = [], []

    def follow(self, blocks):
        for kind, where, text in blocks:
            if kind == "file":
                self.lab.write(where, text)
                continue
            try:
                getattr(self, re.sub(r"\W+", "_", where))(text)
            except Failed as why:
                raise Failed(f"{GUIDE}, {where}: {text}{why}") from None
        check("exit status of ap0", self.background[-1].wait(120), 0)

    def script(self, text):
        return ["sh", "-e", "-c", text]

    def desk(self, text):
        self.finish()
        said = self.lab.run([*self.net.at("desk"), *self.script(text)], env=self.env)[1]
        if "app sor" in text:
            contains("the program", said, VERIFIED)

    def slurm(self, text):
        status, said = self.cluster.run(self.script(text), env=self.env, ok=None)
        if status:
            outputs = "".join(p.read_text() for p in self.lab.dir.glob("many-*.out"))
            raise Failed(f"{said}{outputs}{self.cluster.explain()}")
        self.lab.run_is_whole("dosmos-run/latest", {"north": 2, "south": 2})

    def mpirun(self, text):
        self.desk(text)

    def every_host(self, text, apart=False):
        for name in ("north", "south"):
            script = text
            if apart:
                own = self.lab.dir / name
                own.mkdir()
                for file in ("cluster.toml", "many.token"):
                    shutil.copy(self.lab.dir / file, own)
                shutil.copytree(self.lab.dir / "tls/node", own / "tls/node")
                script = f"cd {name}\n{text}"
            log = f"{name}.{len(self.running)}.out"
            self.running.append((self.lab.start([*self.net.at(name), *self.script(script)], log, env=self.env), log))

    def every_host_apart(self, text):
        self.every_host(text, apart=True)
        self.finish()

    def desk_meanwhile(self, text):
        wait_for("event managers", lambda: (self.lab.dir / "run1/addr/emp1").exists())
        self.lab.run([*self.net.at("desk"), *self.script(text)], env=self.env)

    def finish(self):
        """Waits for what runs on the hosts."""
        said = ""
        for service, log in self.running:
            status = service.wait(120)
            said += self.lab.said(log)
            check(f"exit status: {self.lab.said(log)}", status, 0)
            self.lab.services.remove(service)
        if self.running:
            contains("the program", said, VERIFIED)
        self.running = []

    def desk_in_the_background(self, text):
        for number, line in enumerate(text.splitlines()):
            self.background.append(self.lab.start([*self.net.at("desk"), *self.script(line)], f"background.{number}", env=self.env))

    def desk_when_mp0_is_there(self, text):
        wait_for("mp0", (self.lab.dir / "run4/addr/mp0").exists)
        self.lab.run([*self.net.at("desk"), *self.script(text)], env=self.env)
