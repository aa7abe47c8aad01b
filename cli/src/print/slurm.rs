//! A batch script for Slurm. Slurm names the hosts, so none stands in it unless the user wants these.

use super::plan::{Plan, quoted};

pub(super) fn script(plan: &Plan<'_>) -> String {
    let (name, ranks, hosts) = (plan.name, plan.ranks(), plan.hosts.count());
    let names = match plan.hosts.names() {
        Some(names) => format!("#SBATCH --nodelist={}\n", names.join(",")),
        None => String::new(),
    };
    let node = plan.node(&[]);
    format!(
        "#!/bin/sh
# Cluster {name} under Slurm; the directory of submission must be shared by the hosts: sbatch THIS-FILE
#SBATCH --job-name={}
#SBATCH --nodes={hosts}
#SBATCH --ntasks-per-node={ranks}
#SBATCH --output={name}-%j.out
{names}
# All ranks of the run end together, each with its status.
exec srun --kill-on-bad-exit=1 {node}
",
        quoted(name),
    )
}
