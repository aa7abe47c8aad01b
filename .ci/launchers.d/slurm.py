"""Slurm on this machine: munge, a controller, and a slurmd on each host of a network."""

import json
import os
import shutil
import subprocess

from lab import wait_for

CONF = """
ClusterName=dosmos
SlurmctldHost={first}({address})
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool.%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
TopologyPlugin=topology/tree
PluginDir={plugins}
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=30 State=UP
"""


def lacks():
    """What is missing for it; nothing if all is there."""
    missing = [p for p in ("munged", "mungekey", "slurmctld", "slurmd", "sbatch", "srun") if not shutil.which(p)]
    return f"{', '.join(missing)} (Debian packages munge, slurmctld, slurmd, slurm-client)" if missing else None


class Slurm:
    def __init__(self, lab, net, names):
        self.lab, self.net, self.names = lab, net, names
        os.chmod(lab.dir, 0o755)
        (lab.dir / "state").mkdir()
        plugins = next(p for p in ("/usr/lib/x86_64-linux-gnu/slurm-wlm", "/usr/lib/aarch64-linux-gnu/slurm-wlm",
                                   "/usr/lib/slurm") if os.path.isdir(p))
        nodes = "\n".join(f"NodeName={n} NodeAddr={net.address[n]} CPUs=32 RealMemory=1000 State=UNKNOWN" for n in names)
        lab.write("slurm.conf", CONF.format(first=names[0], address=net.address[names[0]], dir=lab.dir, nodes=nodes,
                                            plugins=plugins))
        switches = [f"SwitchName=leaf{i} Nodes={n}" for i, n in enumerate(names)]
        lab.write("topology.conf", "\n".join([*switches, "SwitchName=root Switches=leaf[0-%d]" % (len(names) - 1), ""]))
        self.env = {"SLURM_CONF": str(lab.dir / "slurm.conf")}
        # No control groups are used; this plugin needs none mounted.
        lab.write("cgroup.conf", "CgroupPlugin=cgroup/v1\n")
        for name in names:
            (lab.dir / f"spool.{name}").mkdir()
        key = lab.dir / "munge.key"
        lab.run(["mungekey", "--create", f"--keyfile={key}"])
        lab.start(["munged", "--foreground", "--force", f"--socket={lab.dir}/munge.socket", f"--key-file={key}",
                   f"--pid-file={lab.dir}/munge.pid", f"--seed-file={lab.dir}/munge.seed", f"--log-file={lab.dir}/munge.log"],
                  "munged.out")
        wait_for("munge", lambda: (lab.dir / "munge.socket").exists())
        lab.start([*net.at(names[0]), "slurmctld", "-D"], "slurmctld.out", env=self.env)
        for name in names:
            lab.start([*net.at(name), "slurmd", "-D", "-N", name], f"slurmd.{name}.out", env=self.env)
        wait_for("all nodes idle", self.idle)

    def idle(self):
        self.lab.none_ended()
        said = subprocess.run([*self.net.at(self.names[0]), "sinfo", "--noheader", "--format=%T %D"],
                              env={**os.environ, **self.env}, capture_output=True, text=True)
        return said.stdout.split() == ["idle", str(len(self.names))]

    def run(self, command, env=None, ok=True):
        """A command on the first host, where users submit."""
        return self.lab.run([*self.net.at(self.names[0]), *command], env={**self.env, **(env or {})}, ok=ok)

    def explain(self):
        logs = sorted(self.lab.dir.glob("slurm*.out"))
        return "\n".join(f"== {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-15:]) for log in logs)
