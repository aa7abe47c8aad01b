//! `dosmos up --print`: scripts and manifests that start a cluster of many hosts under other launchers.

mod kubernetes;
mod mpirun;
mod slurm;
mod systemd;

use std::path::Path;

use anyhow::{Context, bail};
use dosmos_proto::access::Files;

use crate::args::{Hosts, PrintFor, UpArgs};
use crate::config::{Cluster, Launch, NODE};

/// Where rank 0 waits if the cluster file names no port and the hosts may share no directory.
const PORT: u16 = 7763;

/// What a script or manifest is made of.
struct Plan<'a> {
    name: &'a str,
    launch: &'a Launch,
    hosts: &'a Hosts,
    /// The cluster file: as it was named, and its text.
    file: &'a Path,
    text: String,
    /// This program.
    dosmos: String,
    program: &'a [String],
    run_dir: Option<&'a Path>,
    image: &'a str,
    /// Of a node, if the cluster file names certificates.
    tls: Option<&'a Files>,
    /// Said on the command line, and not in the file.
    insecure: bool,
}

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

impl Plan<'_> {
    /// Ranks that a host needs.
    fn ranks(&self) -> usize {
        self.launch.ranks_per_host(self.hosts.count())
    }

    fn port(&self) -> u16 {
        self.launch.port().unwrap_or(PORT)
    }

    /// The command of a rank, quoted for a shell.
    fn node(&self, options: &[&str]) -> String {
        let mut words = vec![self.dosmos.clone(), "node".to_owned()];
        words.extend(options.iter().map(|o| (*o).to_owned()));
        words.extend(["--cluster".to_owned(), self.file.display().to_string()]);
        if self.insecure {
            words.push("--insecure".to_owned());
        }
        if let Some(dir) = self.run_dir {
            words.extend(["--run-dir".to_owned(), dir.display().to_string()]);
        }
        words.push("--".to_owned());
        words.extend(self.program.iter().cloned());
        let quoted: Vec<String> = words.iter().map(|w| quoted(w)).collect();
        quoted.join(" ")
    }
}

/// A word as a POSIX shell reads it back.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_every_word_back() {
        for word in [
            "a", "", "a b", "it's", "$HOME", "`x`", "a\nb", "\\", "é", "~", "!",
        ] {
            let script = format!("printf %s {}", quoted(word));
            let mut shell = std::process::Command::new("sh");
            let said = shell.args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), word);
        }
    }
}
