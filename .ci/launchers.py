"""Runs dosmos under the launchers that people have. See .ci/launchers."""

import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "launchers.d"))

import guide  # noqa: E402
import pods  # noqa: E402
import slurm  # noqa: E402
import terminal  # noqa: E402
from lab import DOSMOS, TOKEN, Failed, Lab, Net, check, contains, has_namespaces, wait_for  # noqa: E402

TLS = 'name = "many"\n[tls]\n' + "".join(f'{key} = "tls/{{name}}/{file}.pem"\n' for key, file in (
    ("ca", "ca"), ("certificate", "certificate"), ("key", "key"))) + "[launch]\napplication_processes = 2\n"
WITHIN = TLS.replace("[tls]", "[defaults]\nin_application = true\ndeadline_ms = 20000\n[tls]")
FILE = 'name = "many"\n[defaults]\ninsecure = true\n[launch]\napplication_processes = 2\n'
SOR = [DOSMOS, "app", "sor", "--rows", "40", "--columns", "40", "--iterations", "20"]
VERIFIED = "equal to a sequential run bit for bit"
# The second of three application processes fails.
FAILING = ["sh", "-c", f"case $DOSMOS_AP in ap1) echo bad luck >&2; exit 3;; *) exec {' '.join(map(str, SOR))};; esac"]


class Skipped(Exception):
    pass


def need(*programs, package):
    missing = [p for p in programs if not shutil.which(p)]
    if missing:
        raise Skipped(f"no {', '.join(missing)} here (Debian package {package})")


def need_namespaces():
    why = has_namespaces()
    if why:
        raise Skipped(why)


def certify(lab):
    """Certificates for the hosts of the lab's cluster file."""
    lab.dosmos("cert", "init", "--cluster", "cluster.toml")
    lab.dosmos("cert", "issue", "--cluster", "cluster.toml", "--role", "memory,event-manager,application", "--any-name", "node")


def parts_are_whole(lab, run, hosts):
    """What each host has recorded, side by side, is a whole run with two application processes a host."""
    (lab.dir / "all/store").mkdir(parents=True)
    for number, host in enumerate(hosts):
        shutil.copytree(lab.dir / f"{run}.{host}/store/emp{number}", lab.dir / f"all/store/emp{number}")
    lab.run_is_whole("all", {host: 2 for host in hosts})


def mpirun():
    """Open MPI's mpirun: the printed script with ten ranks, a program that fails, too few ranks."""
    need("mpirun", package="openmpi-bin")
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with Lab() as lab:
        lab.write("cluster.toml", "name = \"many\"\n[launch]\nmemory_processes = 2\napplication_processes = 7\n")
        script = lab.dosmos("up", "-c", "cluster.toml", "--print", "mpirun", "--hosts", "1", "--", *SOR)
        lab.write("many.sh", script)
        said = lab.run(["sh", "many.sh", "--oversubscribe"], env=root)[1]
        contains("the program", said, VERIFIED)
        contains("what was started", said, "10 ranks of PMIx on 1 host: 7 application processes, 2 memory processes")
        host = lab.run(["hostname"])[1].strip()
        lab.run_is_whole("dosmos-run/latest", {host: 7})
        lab.write("cluster.toml", "name = \"many\"\n[launch]\n")
        mpi = ["mpirun", "--oversubscribe", "-n"]
        said = lab.run([*mpi, "5", DOSMOS, "node", "-c", "cluster.toml", "--run-dir", "run", "--", *FAILING], env=root, ok=False)[1]
        contains("who failed", said, f"ap1 failed (exit status: 3, on {host}): bad luck")
        check("how it ended", lab.ends("run")["ap1"], (host, {"code": 3}))
        said = lab.run([*mpi, "2", DOSMOS, "node", "-c", "cluster.toml", "--run-dir", "few", "--", "true"], env=root, ok=False)[1]
        contains("too few ranks", said, "start at least 3 ranks per host")
        # The same directory again: a run is never written over.
        said = lab.run([*mpi, "3", DOSMOS, "node", "-c", "cluster.toml", "--run-dir", "run", "--", "true"], env=root, ok=False)[1]
        contains("the directory", said, "holds an earlier run")
        # Memory processes within the programs have no rank.
        lab.write("cluster.toml", "name = \"many\"\n[defaults]\nin_application = true\n[launch]\n")
        said = lab.run([*mpi, "4", DOSMOS, "node", "-c", "cluster.toml", "--run-dir", "within", "--", *SOR], env=root)[1]
        contains("the program", said, VERIFIED)
        contains("what was started", said, "4 ranks of PMIx on 1 host: 3 application processes, 3 memory processes")
        lab.run_is_whole("within", {host: 3})


def ranks_by_hand():
    """Missing and doubled ranks are named, as are a wrong file and a wrong token; nobody is left waiting."""
    with Lab() as lab:
        lab.write("cluster.toml", "name = \"many\"\n[launch]\ndeadline_s = 3\n")
        lab.write("other.toml", "name = \"many\"\n[launch]\ndeadline_s = 4\n")

        def ranks(*starts):
            """Starts ranks, each with its settings, in a new directory; what each says, once all have ended."""
            ranks.count += 1
            run_dir, out = f"run{ranks.count}", []
            for number, (rank, more) in enumerate(starts):
                env = {"DOSMOS_RANK": rank, "DOSMOS_SIZE": 4, "DOSMOS_LOCAL_SIZE": 4, **more}
                env = {k: str(v) for k, v in env.items()}
                file = env.pop("FILE", "cluster.toml")
                log = f"{run_dir}.{number}.log"
                out.append((lab.start([DOSMOS, "node", "-c", file, "--run-dir", run_dir, "--", "true"], log, env=env), log))
            for service, _ in out:
                check("exit status", service.wait(120), 2)
            lab.services.clear()
            return [lab.said(log) for _, log in out]
        ranks.count = 0

        for said in ranks((0, {}), (2, {})):
            contains("missing", said, "ranks 1, 3 of 4 did not come within 3s")
        said = ranks((0, {}), (1, {}), (1, {}), (2, {}))
        contains("twice", said[0], "rank 1 is there twice: process ")
        contains("no rank 0", ranks((1, {}))[0], "rank 0 did not come")
        said = ranks((0, {}), (1, {"FILE": "other.toml"}), (2, {}), (3, {}))
        contains("another file", said[1], "has read another cluster file than rank 0")
        contains("missing then", said[0], "rank 1 of 4 did not come")
        # The run has its token before anybody comes: the first to come with one of its own would make it that of the run.
        (lab.dir / "run5").mkdir()
        lab.write("run5/token", "1" * 32 + "\n").chmod(0o600)
        wrong = {"DOSMOS_TOKEN": "0" * 32}
        said = ranks((0, {}), (1, wrong), (2, {}), (3, {}))
        contains("another token", said[1], "DOSMOS_TOKEN is not the token in")


def under_slurm():
    """Slurm with two hosts: the printed script, groups by switch, a program that fails, scancel."""
    need_namespaces()
    if slurm.lacks():
        raise Skipped(f"no {slurm.lacks()} here")
    with Lab() as lab:
        net = Net(lab, ["n1", "n2"])
        cluster = slurm.Slurm(lab, net, ["n1", "n2"])
        lab.write("cluster.toml", TLS + 'groups = "switch"\n')
        certify(lab)
        script = lab.dosmos("up", "-c", "cluster.toml", "--print", "slurm", "--hosts", "2", "--", *SOR)
        lab.write("job.sh", script)
        status, said = cluster.run(["sbatch", "--wait", "--output=job.out", "job.sh"], ok=None)
        if status:
            raise Failed(f"sbatch: {said}{lab.said('job.out')}{cluster.explain()}")
        contains("the program", lab.said("job.out"), VERIFIED)
        lab.run_is_whole("dosmos-run/latest", {"n1": 2, "n2": 2})
        groups = lab.query("groups")["groups"]
        check("groups by switch", sorted(g["path"] for g in groups), ["/root-leaf0", "/root-leaf1"])
        # With memory processes within the programs, each host needs a rank less.
        lab.write("within.toml", WITHIN + 'groups = "switch"\n')
        lab.write("job.sh", lab.dosmos("up", "-c", "within.toml", "--print", "slurm", "--hosts", "2", "--", *SOR))
        cluster.run(["sbatch", "--wait", "--output=within.out", "job.sh"])
        contains("the program", lab.said("within.out"), VERIFIED)
        contains("ranks", lab.said("within.out"), "8 ranks of Slurm on 2 hosts: 4 application processes, 4 memory processes")
        lab.run_is_whole("dosmos-run/latest", {"n1": 2, "n2": 2})
        lab.write("job.sh", lab.dosmos("up", "-c", "cluster.toml", "--print", "slurm", "--hosts", "n[1-2]", "--", *FAILING))
        cluster.run(["sbatch", "--wait", "--output=failed.out", "job.sh"], ok=False)
        contains("who failed", lab.said("failed.out"), "ap1 failed (exit status: 3, on n1): bad luck")
        check("how it ended", lab.ends("dosmos-run/latest")["ap1"], ("n1", {"code": 3}))
        # One that is cancelled ends in order: what was recorded is whole.
        long = [*SOR[:-2], "--seconds", "600"]
        lab.write("job.sh", lab.dosmos("up", "-c", "cluster.toml", "--print", "slurm", "--hosts", "2", "--", *long))
        said = cluster.run(["sbatch", "--parsable", "--output=long.out", "job.sh"])[1]
        job = said.strip()
        run_dir = f"dosmos-run/many-{job}"
        wait_for("accesses", lambda: (lab.dir / run_dir / "addr/emp1").exists() and lab.query(
            "events", "--run-dir", run_dir, "--limit", "1", "--tls", "tls/observer", at=net.at("n1"))["events"])
        cluster.run(["scancel", job])
        wait_for("the end", lambda: "asked to end" in lab.said("long.out") and not lab.listed(run_dir)["run"]["ended"] is None)
        wait_for("all ranks gone", lambda: not cluster.run(["squeue", "--noheader"])[1].strip())
        lacking = lab.listed(run_dir)["lacking"]
        check("what lacks of a run that was cancelled", [w for w in lacking if not w.startswith("the run failed")], [])


def three_hosts():
    """Three hosts that share no directory, and a fourth that looks: the terminal, queries, a link cut and healed."""
    need_namespaces()
    names = ["h1", "h2", "h3"]
    with Lab() as lab:
        net = Net(lab, [*names, "desk"])
        lab.write("cluster.toml", TLS + "port = 7763\n")
        certify(lab)
        token = {"DOSMOS_TOKEN": TOKEN}
        program = [*SOR[:-2], "--seconds", "25"]
        hosts = {}
        for name in names:
            env = {**token, "DOSMOS_HOSTS": "h[1-3]", "DOSMOS_HOST": name}
            command = [*net.at(name), DOSMOS, "node", "--whole-host", "-c", "cluster.toml", "--run-dir", f"run.{name}", "--", *program]
            hosts[name] = lab.start(command, f"{name}.log", env=env)
        emps = []
        for number, name in enumerate(names):
            path = lab.dir / f"run.{name}/addr/emp{number}"
            wait_for(f"emp{number}", path.exists)
            emps += ["--emp", path.read_text().strip()]
        desk = net.at("desk")
        emps += ["--tls", "tls/observer"]

        def lacking():
            return lab.query("events", *emps, "--limit", "1", at=desk, env=token)["completeness"]["missing"]
        wait_for("all event managers answer", lambda: lacking() == [])
        sessions_stay_on(lab, net, "h1")
        refused = lab.run([*desk, DOSMOS, "query", "processes", *emps], ok=False)[1]
        contains("without the token", refused, "token")
        lab.run([*desk, DOSMOS, "query", "processes", *emps[:-2]], ok=False, env=token)
        terminal.until(["/h3", "ap5", "LOCAL"], [*desk, DOSMOS, "top", *emps], cwd=lab.dir, env=token)
        net.link("h2", False)
        wait_for("emp1 is missing", lambda: net.address["h2"] in str(lacking()))
        net.link("h2", True)
        wait_for("emp1 is back", lambda: lacking() == [])
        for name, host in hosts.items():
            if host.wait(120):
                raise Failed(f"{name}: {host.returncode}\n{lab.said(f'{name}.log')}")
        contains("the program", lab.said("h1.log"), VERIFIED)
        parts_are_whole(lab, "run", names)


def within_programs():
    """Two hosts that share no directory, with memory processes within the programs: records are whole, and nobody waits for a program
    that ended without having joined, or was killed."""
    need_namespaces()
    names = ["h1", "h2"]
    with Lab() as lab:
        net = Net(lab, names)
        lab.write("cluster.toml", WITHIN + "port = 7763\n")
        certify(lab)

        def run(kind, program):
            """How each host's part of a run ended, and what the first printed."""
            started = []
            for name in names:
                env = {"DOSMOS_TOKEN": TOKEN, "DOSMOS_HOSTS": "h[1-2]", "DOSMOS_HOST": name}
                command = [*net.at(name), DOSMOS, "node", "--whole-host", "-c", "cluster.toml", "--run-dir", f"{kind}.{name}", "--", *program]
                started.append(lab.start(command, f"{kind}.{name}.log", env=env))
            for host in started:
                wait_for(f"the end of {kind}", lambda: host.poll() is not None)
                lab.services.remove(host)
            return [host.returncode for host in started], lab.said(f"{kind}.h1.log")

        ends, said = run("well", SOR)
        check(f"how it ended: {said}", ends, [0, 0])
        contains("the program", said, VERIFIED)
        parts_are_whole(lab, "well", names)
        lab.write("cluster.toml", (WITHIN + "port = 7763\n").replace("20000", "1500"))
        for kind, end in (("absent", "exit 0"), ("killed", "kill -9 $$")):
            ends, said = run(kind, ["sh", "-c", f"[ $DOSMOS_AP = ap2 ] || exec {' '.join(map(str, SOR))}; {end}"])
            check(f"how it ended: {said}", ends[0], 1)
            contains("who failed", said, "ap0 failed")


def sessions_stay_on(lab, net, host):
    """The processes of a host talk with its memory and its link process over Unix sockets, at which no other user is let in."""
    name = "@dosmos/certified/" + net.address[host]

    def sockets(state):
        listed = lab.run([*net.at(host), "cat", "/proc/net/unix"])[1].splitlines()
        return [row[-1][1:] for row in map(str.split, listed) if row[-1].startswith(name) and row[5] == state]
    # Each connection has the name at the end that accepted: two sessions, and the link between the two processes.
    wait_for("sessions and link over Unix sockets", lambda: len(sockets("03")) == 3)
    knock = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect(chr(0) + sys.argv[1]); print(len(s.recv(1)))"
    as_nobody = ["setpriv", "--reuid", "65534", "--clear-groups"]
    for listening in sockets("01"):
        said = lab.run([*net.at(host), *as_nobody, sys.executable, "-c", knock, listening])[1]
        check("what another user gets", said.strip(), "0")


def slow_links():
    """Three hosts whose processes are behind links that take 2 ms: they advertise where the others reach them. A fourth looks."""
    need_namespaces()
    names, delay_ms = ["h1", "h2", "h3"], 2
    with Lab() as lab:
        net = Net(lab, [*names, "desk"])
        text = TLS.split("[launch]")[0]
        port, processes = 7800, []

        def process(kind, name, host, *lines):
            """A process that listens on its host alone, and something before it that others reach."""
            nonlocal text, port
            port += 1
            inside, outside = f"127.0.0.1:{port}", f"{net.address[host]}:{port}"
            text += f'[[{kind}]]\nname = "{name}"\nlisten = "{inside}"\nadvertise = "{outside}"\n' + "".join(f"{l}\n" for l in lines)
            processes.append((name, host, inside, outside))

        for number, host in enumerate(names):
            text += f'[[group]]\nname = "{host}"\n'
            process("emp", f"emp{number}", host)
        for number, host in enumerate(names):
            process("mp", f"mp{number}", host, f'group = "{host}"', f'emp = "emp{number}"')
        for number, host in enumerate(names):
            process("lp", f"lp{number}", host, f'group = "{host}"')
        for number, host in enumerate(names):
            text += f'[[ap]]\nname = "ap{number}"\nmp = "mp{number}"\n'
        lab.write("cluster.toml", text)
        lab.dosmos("cert", "init", "--cluster", "cluster.toml")
        node = [DOSMOS, "node", "-c", "cluster.toml", "--run-dir", "run", "--name"]
        slow = pathlib.Path(__file__).parent / "launchers.d/slow.py"
        for name, host, inside, outside in processes:
            lab.start([*net.at(host), sys.executable, slow.resolve(), outside, inside, str(delay_ms)], f"{name}.link.log")
            lab.start([*net.at(host), *node, name], f"{name}.log")
        programs = [lab.start([*net.at(host), *node, f"ap{number}", "--", *SOR], f"ap{number}.log") for number, host in enumerate(names)]
        emps = [a for n, _, _, outside in processes if n.startswith("emp") for a in ("--emp", outside)]
        token = {"DOSMOS_TOKEN": wait_for("the token", lambda: (lab.dir / "run/token").exists() and (lab.dir / "run/token").read_text().strip())}
        for number, program in enumerate(programs):
            check(f"exit status of ap{number}: {lab.said(f'ap{number}.log')}", program.wait(120), 0)
        contains("the program", lab.said("ap0.log"), VERIFIED)
        check("what is published", (lab.dir / "run/addr/mp0").read_text().strip(), f"{net.address['h1']}:{7804}")
        seen = lab.query("events", *emps, "--limit", "100000", "--tls", "tls/observer", at=net.at("desk"), env=token)
        check("missing", seen["completeness"]["missing"], [])
        # From the memory process over two link processes to the owner, and back: six times through a link.
        inter = [e["duration_ns"] for e in seen["events"] if e["origin"] == "inter" and e["op"] == "read" and not e["optimized"]]
        if not inter or min(inter) < 6e6 * delay_ms:
            raise Failed(f"reads in other groups took {sorted(inter)[:3]} ns, which is less than the links take")


def by_ssh():
    """dosmos up --hosts: two hosts reached by sshd, each with keys of its own; a program that fails; an interrupt."""
    need_namespaces()
    need("sshd", "ssh-keygen", package="openssh-server")
    with Lab() as lab:
        net = Net(lab, ["desk", "a", "b"])
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        lab.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "user"])
        known = ""
        for name in ("a", "b"):
            lab.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"host.{name}"])
            known += f"{name} {lab.said(f'host.{name}.pub')}"
            lab.write(f"sshd.{name}", f"ListenAddress {net.address[name]}\nPort 22\nHostKey {lab.dir}/host.{name}\nPidFile none\n"
                      f"AuthorizedKeysFile {lab.dir}/user.pub\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
                      "UsePAM no\nStrictModes no\nPermitRootLogin prohibit-password\n")
            sshd = shutil.which("sshd")
            lab.start([*net.at(name), sshd, "-D", "-e", "-f", lab.dir / f"sshd.{name}"], f"sshd.{name}.log")
        lab.write("known", known)
        lab.write("ssh.conf", f"Host *\n  User root\n  IdentityFile {lab.dir}/user\n  UserKnownHostsFile {lab.dir}/known\n"
                  "  StrictHostKeyChecking yes\n  BatchMode yes\n  ConnectionAttempts 30\n")
        # Nothing says that the network is private.
        lab.write("cluster.toml", FILE.replace("insecure = true", ""))
        up = [*net.at("desk"), DOSMOS, "up", "-c", "cluster.toml", "--hosts", "a,b", "--ssh", f"ssh -F {lab.dir}/ssh.conf"]
        said = lab.run([*up, "--run-dir", "refused", "--", *SOR], ok=False)[1]
        contains("without encryption", said, "reachable from other machines without encryption")
        lab.write("cluster.toml", FILE)
        said = lab.run([*up, "--run-dir", "run", "--", *SOR])[1]
        contains("the program", said, VERIFIED)
        lab.run_is_whole("run", {"a": 2, "b": 2})
        said = lab.run([*up, "--run-dir", "failed", "--", *FAILING], ok=False)[1]
        contains("who failed", said, "ap1 failed (exit status: 3, on a): bad luck")
        running = lab.start([*up, "--run-dir", "long", "--", *SOR[:-2], "--seconds", "600"], "up.log")
        wait_for("accesses", lambda: (lab.dir / "long/addr/emp1").exists() and lab.query(
            "events", "--run-dir", "long", "--limit", "1", at=net.at("desk"))["events"])
        # No list of processes shows the token.
        token = (lab.dir / "long/token").read_text().strip()
        listed = "".join(p.read_text(errors="replace") for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if p.exists())
        check("the token is in a command line", token in listed, False)
        running.send_signal(2)
        check("exit status after an interrupt", running.wait(120), 2)
        lacking = lab.listed("long")["lacking"]
        check("what lacks of a run that was interrupted", [w for w in lacking if not w.startswith("the run failed")], [])
        left = lab.run(["ip", "netns", "pids", net.ns("a")])[1].split()
        names = [pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in left]
        check("what is left on the host", [n for n in names if n == "dosmos"], [])


def printed():
    """The manifest against the schema that Kubernetes publishes, the unit by systemd's own check."""
    with Lab() as lab:
        lab.write("cluster.toml", FILE)
        program = ["--", "./my program", "--title", "it's 50% $HOME"]

        def text(what, hosts="a,b,c"):
            return lab.dosmos("up", "-c", "cluster.toml", "--print", what, "--hosts", hosts, *program)
        for what in ("slurm", "mpirun"):
            lab.write(f"{what}.sh", text(what))
            lab.run(["sh", "-n", f"{what}.sh"])
        contains("hosts", lab.said("mpirun.sh"), "--host a:5,b:5,c:5")
        lab.write("unit.service", text("systemd"))
        if shutil.which("systemd-analyze"):
            lab.run(["systemd-analyze", "verify", "./unit.service"])
        else:
            print("   NOT CHECKED: no systemd-analyze here, so the unit is not verified")
        lab.write("many.yaml", text("kubernetes", "3"))
        lab.write("cluster.toml", TLS)
        certify(lab)
        lab.write("secured.yaml", text("kubernetes", "3"))
        contains("where the key is", lab.said("secured.yaml"), 'path: "tls/node/key.pem"')
        lab.write("unit.service", text("systemd"))
        validate = pathlib.Path(sys.executable).parent / "kubernetes-validate"
        if not validate.exists():
            raise Skipped("pip cannot install kubernetes-validate, so the manifest is not validated")
        for version in ("1.28", "1.37"):
            for manifest in ("many.yaml", "secured.yaml"):
                said = lab.run([validate, "--strict", "-k", version, manifest])[1]
                check("resources", len(re.findall("passed for resource", said)), 4)
        lab.write("wrong.yaml", lab.said("many.yaml").replace("completions: 3", "completions: three"))
        lab.run([validate, "--strict", "wrong.yaml"], ok=False)


def in_pods():
    """The printed Job of Kubernetes, its pods being network namespaces with the variables, volumes and names of pods."""
    need_namespaces()
    if pods.lacks():
        raise Skipped(f"no {pods.lacks()}")
    with Lab() as lab:
        lab.write("cluster.toml", TLS)
        certify(lab)
        sor = ["dosmos", *SOR[1:]]
        manifest = lab.dosmos("up", "-c", "cluster.toml", "--print", "kubernetes", "--hosts", str(pods.PODS), "--image", "any", "--", *sor)
        node = {file.name: file.read_text() for file in (lab.dir / "tls/node").iterdir()}
        runs, names = pods.run(lab, manifest, {"many-tls": node, "many-token": {"token": TOKEN}})
        contains("the program", lab.said("many-0.log"), VERIFIED)
        lab.run_is_whole(runs / "dosmos-run/many-a-job", {name: 2 for name in names})


def in_leader_worker_set():
    """Pods of a LeaderWorkerSet, with the variables that its controller sets: network namespaces, the first being the leader."""
    need_namespaces()
    with Lab() as lab:
        names = ["many-0", "many-0-1"]
        net = Net(lab, names)
        lab.write("cluster.toml", TLS + "port = 7763\n")
        certify(lab)
        started = []
        for index, name in enumerate(names):
            env = {"LWS_LEADER_ADDRESS": net.address["many-0"], "LWS_GROUP_SIZE": "2", "LWS_WORKER_INDEX": str(index), "DOSMOS_TOKEN": TOKEN}
            command = [DOSMOS, "node", "--whole-host", "-c", "cluster.toml", "--run-dir", "run", "--", *SOR]
            started.append(lab.start([*net.at(name), *command], f"{name}.log", env=env))
        for name, pod in zip(names, started):
            check(f"{name}: {lab.said(f'{name}.log')}", pod.wait(120), 0)
        lab.services.clear()
        contains("the program", lab.said("many-0.log"), VERIFIED)
        lab.run_is_whole("run", {name: 2 for name in names})


def hydra():
    """MPICH's mpiexec, which speaks PMI: ten ranks, a program that fails."""
    need("mpiexec.hydra", package="mpich")
    with Lab() as lab:
        host = lab.run(["hostname"])[1].strip()
        lab.write("cluster.toml", 'name = "many"\n[launch]\nmemory_processes = 2\napplication_processes = 7\n')
        ranks = ["mpiexec.hydra", "-n"]
        said = lab.run([*ranks, "10", DOSMOS, "node", "-c", "cluster.toml", "--run-dir", "run", "--", *SOR])[1]
        contains("the program", said, VERIFIED)
        contains("what was started", said, "10 ranks of PMI on 1 host: 7 application processes, 2 memory processes")
        lab.run_is_whole("run", {host: 7})
        lab.write("cluster.toml", 'name = "many"\n[launch]\n')
        said = lab.run([*ranks, "5", DOSMOS, "node", "-c", "cluster.toml", "--run-dir", "failed", "--", *FAILING], ok=False)[1]
        contains("who failed", said, f"ap1 failed (exit status: 3, on {host}): bad luck")


def as_flux_does():
    """Ranks with the variables that Flux sets. Flux itself is in neither Debian nor PyPI, so it was not started."""
    with Lab() as lab:
        lab.write("cluster.toml", 'name = "many"\n[launch]\n')
        shared = {"FLUX_JOB_SIZE": "4", "FLUX_JOB_NNODES": "1", "FLUX_JOB_ID": "f2Yx", "FLUX_URI": "local:///run/flux/local"}
        command = [DOSMOS, "node", "-c", "cluster.toml", "--", *SOR]
        started = [lab.start(command, f"{rank}.log", env={**shared, "FLUX_TASK_RANK": str(rank), "FLUX_TASK_LOCAL_ID": str(rank)})
                   for rank in range(4)]
        for rank, task in enumerate(started):
            check(f"{rank}: {lab.said(f'{rank}.log')}", task.wait(120), 0)
        lab.services.clear()
        contains("the program", "".join(lab.said(f"{rank}.log") for rank in range(4)), VERIFIED)
        host = lab.run(["hostname"])[1].strip()
        lab.run_is_whole("dosmos-run/many-f2Yx", {host: 2})


def by_name():
    """dosmos node --name, application processes too; and a program that is started by hand."""
    with Lab() as lab:
        lab.write("cluster.toml", 'name = "hand"\n[[group]]\nname = "g"\n[[emp]]\nname = "emp0"\n'
                  + "".join(f'[[mp]]\nname = "mp{i}"\ngroup = "g"\nemp = "emp0"\n[[ap]]\nname = "ap{i}"\nmp = "mp{i}"\n' for i in range(2)))
        node = [DOSMOS, "node", "-c", "cluster.toml", "--run-dir", "run", "--name"]
        # The program may come first: it waits for its memory process.
        first = lab.start([*node, "ap0", "--", *SOR], "ap0.log")
        for name in ("emp0", "mp0", "mp1"):
            lab.start([*node, name], f"{name}.log")
        wait_for("mp1", (lab.dir / "run/addr/mp1").exists)
        token = (lab.dir / "run/token").read_text().strip()
        by_hand = {"DOSMOS_MP": (lab.dir / "run/addr/mp1").read_text().strip(), "DOSMOS_AP": "ap1", "DOSMOS_TOKEN": token}
        lab.run(SOR, env=by_hand)
        check("exit status", first.wait(120), 0)
        contains("the program", lab.said("ap0.log"), VERIFIED)
        check("that of the program", lab.run([*node, "ap0", "--", "sh", "-c", "exit 7"], ok=False)[0], 7)
        said = lab.run([*node, "ap0"], ok=False)[1]
        contains("without a program", said, "add the program that it runs")
        said = lab.run([*node, "ap7", "--", "true"], ok=False)[1]
        contains("unknown", said, "its processes: emp0, mp0, mp1, ap0, ap1")


TESTS = [by_name, ranks_by_hand, mpirun, hydra, under_slurm, as_flux_does, three_hosts, within_programs, slow_links, by_ssh, printed, in_pods,
         in_leader_worker_set, guide.followed]


def main():
    passed = skipped = 0
    failed = []
    for test in TESTS:
        if len(sys.argv) > 1 and test.__name__ not in sys.argv[1:]:
            continue
        print(f"-- {test.__name__}: {test.__doc__.splitlines()[0]}", flush=True)
        try:
            test()
            passed += 1
        except (Skipped, guide.Skipped) as why:
            skipped += 1
            print(f"   NOT CHECKED: {why}", flush=True)
        except (Failed, subprocess.TimeoutExpired) as why:
            failed.append(test.__name__)
            print(f"   FAILED: {why}", flush=True)
    print(f"launchers: {passed} passed, {len(failed)} failed, {skipped} skipped")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
