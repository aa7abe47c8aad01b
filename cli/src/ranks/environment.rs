//! What a launcher says to the processes that it starts: their rank, how many there are, where they run.

use anyhow::{Context, bail};

use crate::host_list;

/// The rank of a process, or with `--whole-host` of a host; others may be set beside it.
pub(crate) const ENV_RANK: &str = "DOSMOS_RANK";
/// How many ranks there are.
pub(crate) const ENV_SIZE: &str = "DOSMOS_SIZE";
/// How many of them are on this host.
pub(crate) const ENV_LOCAL_SIZE: &str = "DOSMOS_LOCAL_SIZE";
/// The name of this host.
pub(crate) const ENV_HOST: &str = "DOSMOS_HOST";
/// All hosts: the rank of a host is its place in the list.
pub(crate) const ENV_HOSTS: &str = "DOSMOS_HOSTS";
/// The switch that this host is connected to.
pub(crate) const ENV_SWITCH: &str = "DOSMOS_SWITCH";
/// Names this start of the cluster: part of the name of its run directory.
pub(crate) const ENV_JOB: &str = "DOSMOS_JOB";
/// Names a start of a unit of systemd.
const ENV_SYSTEMD: &str = "INVOCATION_ID";
/// `host:port` where rank 0 waits for the others.
pub(crate) const ENV_RENDEZVOUS: &str = "DOSMOS_RENDEZVOUS";

/// A launcher, by the variables that it sets. The first that has set its rank counts: one may run inside another.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    size: &'static [&'static str],
    /// Ranks on this host.
    local_size: &'static [&'static str],
    /// Number of hosts.
    hosts: &'static [&'static str],
    /// List of hosts, rank 0 on the first.
    host_list: &'static [&'static str],
    job: &'static [&'static str],
}

const LAUNCHERS: [Launcher; 8] = [
    Launcher {
        name: "dosmos",
        rank: ENV_RANK,
        size: &[ENV_SIZE],
        local_size: &[ENV_LOCAL_SIZE],
        hosts: &[],
        host_list: &[ENV_HOSTS],
        job: &[ENV_JOB],
    },
    Launcher {
        name: "PMIx",
        rank: "PMIX_RANK",
        size: &[
            "PMIX_SIZE",
            "OMPI_COMM_WORLD_SIZE",
            "SLURM_STEP_NUM_TASKS",
            "SLURM_NTASKS",
            "FLUX_JOB_SIZE",
        ],
        local_size: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
        hosts: &["SLURM_STEP_NUM_NODES", "FLUX_JOB_NNODES"],
        host_list: &["SLURM_STEP_NODELIST"],
        job: &["PMIX_NAMESPACE"],
    },
    Launcher {
        name: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        size: &["OMPI_COMM_WORLD_SIZE"],
        local_size: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
        hosts: &[],
        host_list: &[],
        job: &["OMPI_MCA_ess_base_jobid"],
    },
    Launcher {
        name: "PMI",
        rank: "PMI_RANK",
        size: &["PMI_SIZE"],
        local_size: &["MPI_LOCALNRANKS"],
        hosts: &["SLURM_STEP_NUM_NODES"],
        host_list: &["SLURM_STEP_NODELIST"],
        job: &["SLURM_JOB_ID", "PMI_JOBID", "PMI_ID"],
    },
    Launcher {
        name: "Slurm",
        rank: "SLURM_PROCID",
        size: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"],
        local_size: &[],
        hosts: &[
            "SLURM_STEP_NUM_NODES",
            "SLURM_JOB_NUM_NODES",
            "SLURM_NNODES",
        ],
        host_list: &[
            "SLURM_STEP_NODELIST",
            "SLURM_JOB_NODELIST",
            "SLURM_NODELIST",
        ],
        job: &["SLURM_JOB_ID", "SLURM_JOBID"],
    },
    Launcher {
        name: "Flux",
        rank: "FLUX_TASK_RANK",
        size: &["FLUX_JOB_SIZE"],
        local_size: &[],
        hosts: &["FLUX_JOB_NNODES"],
        host_list: &[],
        job: &["FLUX_JOB_ID"],
    },
    Launcher {
        name: "Kubernetes",
        rank: "JOB_COMPLETION_INDEX",
        size: &[ENV_SIZE],
        local_size: &[],
        hosts: &[],
        host_list: &[],
        job: &[ENV_JOB],
    },
    Launcher {
        name: "LeaderWorkerSet",
        rank: "LWS_WORKER_INDEX",
        size: &["LWS_GROUP_SIZE"],
        local_size: &[],
        hosts: &[],
        host_list: &["LWS_LEADER_ADDRESS"],
        job: &[ENV_JOB],
    },
];

/// What this process is to its launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Who started it.
    pub(crate) launcher: &'static str,
    /// Its number, from 0.
    pub(crate) rank: u32,
    /// How many ranks there are.
    pub(crate) size: u32,
    /// The name of its host.
    pub(crate) host: String,
    /// The switch of its host, if known.
    pub(crate) switch: Option<String>,
    /// Whether all ranks are known to be on this host.
    pub(crate) alone: bool,
    /// All hosts, if the launcher lists them; rank 0 is on the first.
    pub(crate) hosts: Vec<String>,
    /// Names this start, if the launcher does.
    pub(crate) job: Option<String>,
    /// Where rank 0 is to be found, if set.
    pub(crate) rendezvous: Option<String>,
}

/// The place that the launcher gave to this process; none if no launcher started it.
///
/// # Errors
/// A variable that is missing or wrong, by its name.
pub(crate) fn place() -> anyhow::Result<Option<Place>> {
    place_with(&[])
}

/// The same; these variables count more than those of the environment.
///
/// # Errors
/// As [`place`].
pub(crate) fn place_with(settings: &[(String, String)]) -> anyhow::Result<Option<Place>> {
    place_by(&|name| {
        let set = settings.iter().find(|(key, _)| key == name);
        let set = set.map(|(_, value)| value.clone());
        set.or_else(|| std::env::var(name).ok())
    })
}

fn place_by(lookup: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Option<Place>> {
    let set = |name: &str| lookup(name).filter(|text| !text.is_empty());
    let first = |names: &[&'static str]| names.iter().find_map(|n| Some((*n, set(n)?)));
    let number = |(name, text): (&str, String)| -> anyhow::Result<u32> {
        text.parse()
            .with_context(|| format!("{name} is {text:?}, not a number"))
    };
    let own = host_name(&set);
    let Some(launcher) = LAUNCHERS.iter().find(|l| set(l.rank).is_some()) else {
        return by_host_list(&set, &own?);
    };
    let rank = number((launcher.rank, set(launcher.rank).unwrap_or_default()))?;
    let hosts = match first(launcher.host_list) {
        Some((name, text)) => host_list::parse(&text).context(name)?,
        None => Vec::new(),
    };
    let Some(size) = first(launcher.size) else {
        bail!(
            "{} is {rank}, but the number of ranks is missing: set {}",
            launcher.rank,
            launcher.size.join(" or ")
        );
    };
    let size_name = size.0;
    let size = number(size)?;
    if rank >= size {
        bail!(
            "{} is {rank}, but {size_name} is {size}: ranks count from 0",
            launcher.rank
        );
    }
    let local_size = first(launcher.local_size).map(number).transpose()?;
    let host_count = first(launcher.hosts).map(number).transpose()?;
    Ok(Some(Place {
        launcher: launcher.name,
        rank,
        size,
        alone: size == 1 || local_size == Some(size) || host_count == Some(1),
        host: own?,
        switch: switch(&set),
        hosts,
        job: first(launcher.job).map(|(_, job)| match set("SLURM_RESTART_COUNT") {
            Some(again) if again != "0" && launcher.name == "Slurm" => format!("{job}-{again}"),
            _ => job,
        }),
        rendezvous: set(ENV_RENDEZVOUS),
    }))
}

/// The place of a host in a list of hosts.
fn by_host_list(set: &dyn Fn(&str) -> Option<String>, host: &str) -> anyhow::Result<Option<Place>> {
    let Some(text) = set(ENV_HOSTS) else {
        return Ok(None);
    };
    let hosts = host_list::parse(&text).context(ENV_HOSTS)?;
    let short = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let exact = hosts.iter().position(|h| h == host);
    let rank = exact.or_else(|| hosts.iter().position(|h| short(h) == short(host)));
    let Some(rank) = rank else {
        bail!(
            "this host is {host}, which is not in {ENV_HOSTS} ({text}): set {ENV_HOST} to its name there"
        );
    };
    Ok(Some(Place {
        launcher: "a list of hosts",
        rank: u32::try_from(rank).context(ENV_HOSTS)?,
        size: u32::try_from(hosts.len()).context(ENV_HOSTS)?,
        alone: hosts.len() == 1,
        host: hosts[rank].clone(),
        switch: switch(set),
        job: set(ENV_JOB).or_else(|| set(ENV_SYSTEMD)),
        rendezvous: set(ENV_RENDEZVOUS),
        hosts,
    }))
}

fn host_name(set: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<String> {
    if let Some(name) = set(ENV_HOST).or_else(|| set("SLURMD_NODENAME")) {
        return Ok(name);
    }
    let name = nix::unistd::gethostname().context("this host has no name")?;
    name.into_string()
        .map_err(|name| anyhow::anyhow!("the name of this host is not text: {name:?}"))
}

/// `SLURM_TOPOLOGY_ADDR` names the switches from the root to this host, and the host.
fn switch(set: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let of_slurm = || {
        let path = set("SLURM_TOPOLOGY_ADDR")?;
        let (switches, _) = path.rsplit_once('.')?;
        Some(switches.replace('.', "-"))
    };
    set(ENV_SWITCH).or_else(of_slurm)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_of(pairs: &[(&str, &str)]) -> anyhow::Result<Option<Place>> {
        place_by(&|name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn found(pairs: &[(&str, &str)]) -> Place {
        let host = [pairs, &[(ENV_HOST, "h")]].concat();
        place_of(&host).unwrap().unwrap()
    }

    #[test]
    fn every_launcher_is_understood() {
        for (pairs, launcher, alone) in [
            (
                &[("DOSMOS_RANK", "2"), ("DOSMOS_SIZE", "8")][..],
                "dosmos",
                false,
            ),
            (
                &[
                    ("PMIX_RANK", "2"),
                    ("OMPI_COMM_WORLD_SIZE", "8"),
                    ("OMPI_COMM_WORLD_LOCAL_SIZE", "8"),
                    ("OMPI_COMM_WORLD_RANK", "2"),
                ],
                "PMIx",
                true,
            ),
            (
                &[
                    ("OMPI_COMM_WORLD_RANK", "2"),
                    ("OMPI_COMM_WORLD_SIZE", "8"),
                    ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
                ],
                "Open MPI",
                false,
            ),
            (&[("PMI_RANK", "2"), ("PMI_SIZE", "8")], "PMI", false),
            (
                &[
                    ("SLURM_PROCID", "2"),
                    ("SLURM_NTASKS", "8"),
                    ("SLURM_NNODES", "1"),
                ],
                "Slurm",
                true,
            ),
            (
                &[
                    ("FLUX_TASK_RANK", "2"),
                    ("FLUX_JOB_SIZE", "8"),
                    ("FLUX_JOB_NNODES", "2"),
                ],
                "Flux",
                false,
            ),
            (
                &[("JOB_COMPLETION_INDEX", "2"), ("DOSMOS_SIZE", "8")],
                "Kubernetes",
                false,
            ),
            (
                &[("LWS_WORKER_INDEX", "2"), ("LWS_GROUP_SIZE", "8")],
                "LeaderWorkerSet",
                false,
            ),
        ] {
            let place = found(pairs);
            let got = (place.launcher, place.rank, place.size, place.alone);
            assert_eq!(got, (launcher, 2, 8, alone));
        }
        assert_eq!(place_of(&[]).unwrap(), None);
    }

    #[test]
    fn a_step_of_slurm_counts_more_than_its_job() {
        let place = found(&[
            ("SLURM_PROCID", "1"),
            ("SLURM_NTASKS", "16"),
            ("SLURM_STEP_NUM_TASKS", "4"),
            ("SLURM_JOB_NODELIST", "n[01-04,7]"),
            ("SLURM_STEP_NODELIST", "n[02-03]"),
            ("SLURM_JOB_NUM_NODES", "5"),
            ("SLURM_STEP_NUM_NODES", "2"),
            ("SLURM_TOPOLOGY_ADDR", "root.leaf1.n02"),
            ("SLURM_JOB_ID", "77"),
            ("SLURM_RESTART_COUNT", "1"),
        ]);
        assert_eq!((place.size, place.alone), (4, false));
        assert_eq!(place.hosts, ["n02", "n03"]);
        assert_eq!(place.switch.as_deref(), Some("root-leaf1"));
        assert_eq!(place.job.as_deref(), Some("77-1"));
    }

    #[test]
    fn the_rank_of_a_host_is_its_place_in_a_list() {
        let place = place_of(&[(ENV_HOSTS, "a,b.example,c"), (ENV_HOST, "b")]);
        let place = place.unwrap().unwrap();
        assert_eq!((place.rank, place.size, place.alone), (1, 3, false));
        assert_eq!(place.host, "b.example");
        let error = place_of(&[(ENV_HOSTS, "a,b"), (ENV_HOST, "x")]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("this host is x"), "{error}");
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (pairs, why) in [
            (&[("SLURM_PROCID", "1")][..], "SLURM_NTASKS"),
            (&[("JOB_COMPLETION_INDEX", "1")], "set DOSMOS_SIZE"),
            (&[("PMI_RANK", "x"), ("PMI_SIZE", "2")], "PMI_RANK is \"x\""),
            (
                &[("PMI_RANK", "2"), ("PMI_SIZE", "2")],
                "ranks count from 0",
            ),
            (
                &[
                    ("SLURM_PROCID", "0"),
                    ("SLURM_NTASKS", "1"),
                    ("SLURM_JOB_NODELIST", "n[1"),
                ],
                "SLURM_JOB_NODELIST",
            ),
        ] {
            let error = place_of(pairs).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(why), "{error}");
        }
    }
}
