//! `dosmos up --print`: scripts and manifests that start a cluster of many hosts under other launchers.

mod kubernetes;
mod mpirun;
mod plan;
mod slurm;
mod systemd;

use anyhow::{Context, bail};

use crate::args::{PrintFor, UpArgs};
use crate::config::{Cluster, NODE};
use plan::Plan;
pub(crate) use plan::quoted;

/// The script or manifest, as text.
///
/// # Errors
/// If the cluster file or the command line says too little for it.
pub(crate) fn print(
    what: PrintFor,
    cluster: &Cluster,
    program: &[String],
    args: &UpArgs,
) -> anyhow::Result<String> {
    let file = &args.cluster;
    let Some(launch) = &cluster.launch else {
        bail!(
            "--print needs a [launch] section in {}: it says which processes a host has",
            file.display()
        );
    };
    let hosts = args.hosts.as_ref();
    let hosts = hosts.context("--print needs the hosts: add --hosts a,b,c or --hosts NUMBER")?;
    let dosmos = std::env::current_exe().context("cannot find the path of this executable")?;
    let tls = cluster.tls.as_ref().map(|files| files.of_process(NODE));
    let plan = Plan {
        tls: tls.as_ref(),
        name: cluster.topology.name(),
        launch,
        hosts,
        file,
        text: std::fs::read_to_string(file).with_context(|| file.display().to_string())?,
        dosmos: dosmos.display().to_string(),
        program,
        run_dir: args.run_dir.as_deref(),
        image: &args.image,
        insecure: args.insecure,
    };
    match what {
        PrintFor::Slurm => Ok(slurm::script(&plan)),
        PrintFor::Mpirun => Ok(mpirun::script(&plan)),
        PrintFor::Kubernetes => Ok(kubernetes::manifest(&plan)),
        PrintFor::Systemd => systemd::unit(&plan),
    }
}
