//! Hosts on the command line, and the launchers that `dosmos up --print` writes for.

use std::str::FromStr;

use clap::ValueEnum;

use crate::host_list;

/// Hosts by name, or only how many.
#[derive(Clone, Debug)]
pub(crate) struct Hosts(Known);

#[derive(Clone, Debug)]
enum Known {
    Names(Vec<String>),
    Number(usize),
}

impl FromStr for Hosts {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(number) = text.parse::<usize>() {
            return match number {
                1..=65_536 => Ok(Self(Known::Number(number))),
                _ => Err("the number of hosts must be from 1 to 65536".to_owned()),
            };
        }
        let names = host_list::parse(text).map_err(|e| e.to_string())?;
        let mut sorted = names.clone();
        sorted.sort();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("host {} is there twice", pair[0]));
        }
        // Where a host is named to another program, it must not be taken for an option.
        if let Some(name) = names.iter().find(|n| n.starts_with('-')) {
            return Err(format!("{name} is not the name of a host"));
        }
        Ok(Self(Known::Names(names)))
    }
}

impl Hosts {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        match &self.0 {
            Known::Names(names) => names.len(),
            Known::Number(number) => *number,
        }
    }

    /// Their names, if known.
    pub(crate) fn names(&self) -> Option<&[String]> {
        match &self.0 {
            Known::Names(names) => Some(names),
            Known::Number(_) => None,
        }
    }
}

/// What `dosmos up --print` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrintFor {
    /// A batch script for sbatch
    Slurm,
    /// A shell script that runs Open MPI's mpirun
    Mpirun,
    /// A manifest: Service, ConfigMap, volume claim and indexed Job
    Kubernetes,
    /// A unit, the same for all hosts
    Systemd,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_a_number() {
        let hosts: Hosts = "n[1-3],x".parse().unwrap();
        assert_eq!(
            (hosts.count(), hosts.names().unwrap()[3].as_str()),
            (4, "x")
        );
        let hosts: Hosts = "3".parse().unwrap();
        assert_eq!((hosts.count(), hosts.names()), (3, None));
        for bad in ["", "0", "a,a", "n[", "-oProxyCommand=x"] {
            assert!(bad.parse::<Hosts>().is_err(), "{bad}");
        }
    }
}
