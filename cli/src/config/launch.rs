//! The `[launch]` rule of a cluster file: which rank of a launcher is which process.
//!
//! On each host, in the order of its ranks: the event manager, the memory processes, the link process if the host is the
//! first of its group, and application processes. So a file that names no host describes clusters of any size. Memory processes
//! that are within application processes take no rank: each application process has one.

use std::collections::BTreeMap;
use std::time::Duration;

use super::file;
use crate::host_list;
use crate::network::Network;

/// How long ranks may take to be there.
const DEADLINE: Duration = Duration::from_secs(60);

/// A rule that makes sense.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Those of a host that have a rank: none if each is within an application process.
    memory_processes: usize,
    application_processes: Option<usize>,
    groups: Groups,
    network: Option<Network>,
    port: Option<u16>,
    deadline: Duration,
}

/// What a group is.
#[derive(Clone, Debug)]
enum Groups {
    Host,
    Switch,
    One,
    /// The group of each host that the file lists.
    List(BTreeMap<String, String>),
}

/// A rank, and where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its number, from 0.
    pub rank: u32,
    /// The name of its host.
    pub host: String,
    /// The network switch that its host is connected to, if its launcher says.
    pub switch: Option<String>,
}

/// What a rank does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An event manager.
    EventManager,
    /// A memory process.
    Memory,
    /// A link process.
    Link,
    /// An application process.
    Application,
    /// Nothing: its host has more ranks than the rule has work for.
    Spare,
}

/// A rank with its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// The rank.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// What it does.
    pub role: Role,
    /// The name of its process.
    pub name: String,
}

/// The processes of a cluster, as entries of a cluster file, and whose they are.
pub(super) struct Expanded {
    pub(super) posts: Vec<Post>,
    pub(super) group: Vec<file::Group>,
    pub(super) emp: Vec<file::Emp>,
    pub(super) lp: Vec<file::Lp>,
    pub(super) mp: Vec<file::Mp>,
    pub(super) ap: Vec<file::Ap>,
}

struct Host {
    name: String,
    ranks: Vec<u32>,
    group: String,
}

impl Launch {
    /// Checks what the file says; `in_application`: that each memory process is within an application process.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(super) fn new(written: &file::Launch, in_application: bool) -> Result<Self, Vec<String>> {
        let mut errors = Vec::new();
        let mut error = |text: String| errors.push(format!("launch: {text}"));
        let at_least_one = |key: &str, n: Option<usize>| {
            (n == Some(0)).then(|| format!("{key} must be at least 1"))
        };
        at_least_one("memory_processes", written.memory_processes).map(&mut error);
        at_least_one("application_processes", written.application_processes).map(&mut error);
        if in_application && written.memory_processes.is_some() {
            error(
                "memory_processes counts those that have a rank, and with in_application each application process has its own; remove one of the two"
                    .to_owned(),
            );
        }
        let network = match written.network.as_deref().map(str::parse).transpose() {
            Ok(network) => network,
            Err(e) => {
                let e: crate::network::InvalidNetwork = e;
                error(e.to_string());
                None
            }
        };
        if written.port == Some(0) {
            error("port must not be 0: all ranks must know it".to_owned());
        }
        let seconds = written.deadline_s.unwrap_or(DEADLINE.as_secs());
        if !(1..=86_400).contains(&seconds) {
            error("deadline_s must be from 1 to 86400".to_owned());
        }
        let groups = match (written.groups, written.group.is_empty()) {
            (Some(_), false) => {
                error("has both groups and [[launch.group]]; keep one".to_owned());
                Groups::One
            }
            (None, false) => Groups::List(listed(&written.group, &mut error)),
            (None | Some(file::Groups::Host), true) => Groups::Host,
            (Some(file::Groups::Switch), true) => Groups::Switch,
            (Some(file::Groups::One), true) => Groups::One,
        };
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Self {
            memory_processes: match in_application {
                true => 0,
                false => written.memory_processes.unwrap_or(1),
            },
            application_processes: written.application_processes,
            groups,
            network,
            port: written.port,
            deadline: Duration::from_secs(seconds),
        })
    }

    /// Which of a host's networks the processes use, if the file says.
    pub fn network(&self) -> Option<&Network> {
        self.network.as_ref()
    }

    /// Where rank 0 listens for the others, if they do not share a run directory.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// How long ranks may take to be there.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Application processes of a host for which its launcher does not say how many ranks it has.
    pub fn applications_per_host(&self) -> usize {
        let default = self.memory_processes.max(1);
        self.application_processes.unwrap_or(default)
    }

    /// Ranks that a host needs, one of `hosts`.
    pub fn ranks_per_host(&self, hosts: usize) -> usize {
        let link = match &self.groups {
            Groups::One => 0,
            Groups::List(of) if of.values().all(|g| Some(g) == of.values().next()) => 0,
            Groups::Host | Groups::Switch | Groups::List(_) => usize::from(hosts > 1),
        };
        1 + self.memory_processes + link + self.applications_per_host()
    }

    /// The seats of one host with as many ranks as the rule has work for.
    pub(super) fn on_one_host(&self) -> Vec<Seat> {
        let host = match &self.groups {
            Groups::List(of) => of.keys().next().cloned(),
            Groups::Host | Groups::Switch | Groups::One => None,
        };
        let host = host.unwrap_or_else(|| "local".to_owned());
        let seat = |rank| Seat {
            rank,
            host: host.clone(),
            switch: Some("local".to_owned()),
        };
        (0u32..).take(self.ranks_per_host(1)).map(seat).collect()
    }

    /// Gives each rank its process.
    ///
    /// # Errors
    /// Everything that keeps these ranks from being a cluster.
    pub(super) fn expand(&self, seats: &[Seat]) -> Result<Expanded, Vec<String>> {
        let hosts = self.hosts(seats)?;
        let mut groups: Vec<&str> = Vec::new();
        for host in &hosts {
            if !groups.contains(&host.group.as_str()) {
                groups.push(&host.group);
            }
        }
        let mut expanded = Expanded {
            posts: Vec::new(),
            group: groups.iter().map(|g| file::Group::top(g)).collect(),
            emp: Vec::new(),
            lp: Vec::new(),
            mp: Vec::new(),
            ap: Vec::new(),
        };
        let mut errors = Vec::new();
        let mut linked: Vec<&str> = Vec::new();
        for host in &hosts {
            let link = groups.len() > 1 && !linked.contains(&host.group.as_str());
            if link {
                linked.push(&host.group);
            }
            if let Err(e) = self.expand_host(host, link, &mut expanded) {
                errors.push(e);
            }
        }
        if errors.is_empty() && expanded.ap.is_empty() {
            let needed = self.ranks_per_host(hosts.len());
            errors.push(format!(
                "no rank is left for an application process; start at least {needed} ranks per host"
            ));
        }
        if errors.is_empty() {
            Ok(expanded)
        } else {
            Err(errors)
        }
    }

    /// The hosts, by their first rank.
    fn hosts(&self, seats: &[Seat]) -> Result<Vec<Host>, Vec<String>> {
        let (mut hosts, mut errors): (Vec<Host>, Vec<String>) = (Vec::new(), Vec::new());
        let mut seats: Vec<&Seat> = seats.iter().collect();
        seats.sort_by_key(|s| s.rank);
        for seat in seats {
            if let Some(host) = hosts.iter_mut().find(|h| h.name == seat.host) {
                host.ranks.push(seat.rank);
                continue;
            }
            let group = self.group_of(seat).unwrap_or_else(|e| {
                errors.push(e);
                String::new()
            });
            hosts.push(Host {
                name: seat.host.clone(),
                ranks: vec![seat.rank],
                group,
            });
        }
        if errors.is_empty() {
            Ok(hosts)
        } else {
            Err(errors)
        }
    }

    fn group_of(&self, seat: &Seat) -> Result<String, String> {
        match &self.groups {
            Groups::Host => Ok(seat.host.clone()),
            Groups::One => Ok("all".to_owned()),
            Groups::Switch => seat.switch.clone().ok_or_else(|| {
                format!(
                    "launch: the switch of host {} is not known; set DOSMOS_SWITCH there, or list the hosts of each group in \
                     [[launch.group]]",
                    seat.host
                )
            }),
            Groups::List(of) => of.get(&seat.host).cloned().ok_or_else(|| {
                format!(
                    "launch: host {} is in no [[launch.group]]; add it to the hosts of one",
                    seat.host
                )
            }),
        }
    }

    fn expand_host(&self, host: &Host, link: bool, to: &mut Expanded) -> Result<(), String> {
        let needed = 1 + self.memory_processes + usize::from(link);
        if host.ranks.len() < needed {
            let serving = match self.memory_processes {
                0 => String::new(),
                n => format!(", {n} memory processes"),
            };
            let linking = if link { ", a link process" } else { "" };
            return Err(format!(
                "host {} has {} ranks and needs at least {needed} (an event manager{serving}{linking}), and one for each \
                 application process; start more ranks per host, or one per host with --whole-host",
                host.name,
                host.ranks.len(),
            ));
        }
        let first_memory = to.mp.len();
        let emp = format!("emp{}", to.emp.len());
        for (place, rank) in host.ranks.iter().enumerate() {
            let (role, name) = if place == 0 {
                to.emp.push(file::Emp::named(&emp));
                (Role::EventManager, emp.clone())
            } else if place <= self.memory_processes {
                let name = format!("mp{}", to.mp.len());
                to.mp.push(file::Mp::named(&name, &host.group, &emp));
                (Role::Memory, name)
            } else if place < needed {
                let name = format!("lp.{}", host.group);
                to.lp.push(file::Lp::named(&name, &host.group, &emp));
                (Role::Link, name)
            } else if self
                .application_processes
                .is_none_or(|k| place < needed + k)
            {
                let mp = match self.memory_processes {
                    0 => {
                        let within = to.mp.len();
                        to.mp
                            .push(file::Mp::named(&format!("mp{within}"), &host.group, &emp));
                        within
                    }
                    several => first_memory + (place - needed) % several,
                };
                let name = format!("ap{}", to.ap.len());
                to.ap.push(file::Ap::named(&name, &format!("mp{mp}")));
                (Role::Application, name)
            } else {
                (Role::Spare, format!("spare{rank}"))
            };
            to.posts.push(Post {
                rank: *rank,
                host: host.name.clone(),
                role,
                name,
            });
        }
        Ok(())
    }
}

/// The group of each host.
fn listed(
    groups: &[file::LaunchGroup],
    error: &mut impl FnMut(String),
) -> BTreeMap<String, String> {
    let mut of = BTreeMap::new();
    for group in groups {
        match host_list::parse(&group.hosts) {
            Err(e) => error(format!("group {}: {e}", group.name)),
            Ok(hosts) => {
                for host in hosts {
                    if let Some(other) = of.insert(host.clone(), group.name.clone()) {
                        let name = &group.name;
                        error(format!("host {host} is in the groups {other} and {name}"));
                    }
                }
            }
        }
    }
    of
}

#[cfg(test)]
mod tests {
    use super::super::{Cluster, Protection};
    use super::*;

    fn seats(hosts: &[(&str, usize)]) -> Vec<Seat> {
        let ranks = hosts
            .iter()
            .flat_map(|(host, n)| std::iter::repeat_n(host, *n));
        (0u32..)
            .zip(ranks)
            .map(|(rank, host)| Seat {
                rank,
                host: (*host).to_owned(),
                switch: Some(format!("s{}", &host[1..2])),
            })
            .collect()
    }

    fn text(rule: &str) -> String {
        format!("name = \"t\"\n[defaults]\ninsecure = true\n[launch]\n{rule}")
    }

    fn of_ranks(rule: &str, seats: &[Seat]) -> Result<(Cluster, Vec<Post>), Vec<String>> {
        Cluster::of_ranks(&text(rule), seats, Protection::None)
    }

    fn names(rule: &str, seats: &[Seat]) -> Vec<String> {
        let (_, posts) = of_ranks(rule, seats).unwrap();
        posts.into_iter().map(|p| p.name).collect()
    }

    fn refused(rule: &str, seats: &[Seat]) -> String {
        let refused = of_ranks(rule, seats).unwrap_err();
        refused.join("\n")
    }

    #[test]
    fn ranks_become_processes_host_by_host() {
        let got = names("", &seats(&[("n1", 4), ("n2", 5)]));
        let want = [
            "emp0", "mp0", "lp.n1", "ap0", "emp1", "mp1", "lp.n2", "ap1", "ap2",
        ];
        assert_eq!(got, want);
        // No group has a link process if there is only one.
        let got = names("memory_processes = 2", &seats(&[("n1", 5)]));
        assert_eq!(got, ["emp0", "mp0", "mp1", "ap0", "ap1"]);
        // What is not needed waits.
        let got = names(
            "groups = \"one\"\napplication_processes = 1",
            &seats(&[("n1", 4), ("n2", 3)]),
        );
        assert_eq!(got, ["emp0", "mp0", "ap0", "spare3", "emp1", "mp1", "ap1"]);
    }

    #[test]
    fn ranks_that_are_dealt_out_in_turn_are_taken_by_host() {
        let mut dealt = seats(&[("n1", 3), ("n2", 3)]);
        for (i, seat) in dealt.iter_mut().enumerate() {
            seat.host = format!("n{}", 1 + i % 2);
        }
        let (cluster, posts) = of_ranks("groups = \"one\"", &dealt).unwrap();
        let on_first: Vec<_> = posts.iter().filter(|p| p.host == "n1").collect();
        let ranks: Vec<u32> = on_first.iter().map(|p| p.rank).collect();
        assert_eq!(ranks, [0, 2, 4]);
        assert_eq!(on_first[2].role, Role::Application);
        let topology = &cluster.topology;
        let ap1 = &topology.application_processes()[1];
        assert_eq!(topology.mp_name(ap1.memory_process), "mp1", "on its host");
    }

    #[test]
    fn memory_processes_within_application_processes_take_no_rank() {
        let file = text("application_processes = 2").replacen(
            "insecure",
            "in_application = true\ninsecure",
            1,
        );
        let hosts = seats(&[("n1", 4), ("n2", 5)]);
        let (cluster, posts) = Cluster::of_ranks(&file, &hosts, Protection::None).unwrap();
        let names: Vec<String> = posts.into_iter().map(|p| p.name).collect();
        let want = [
            "emp0", "lp.n1", "ap0", "ap1", "emp1", "lp.n2", "ap2", "ap3", "spare8",
        ];
        assert_eq!(names, want);
        let topology = &cluster.topology;
        let of = topology.application_processes().iter();
        let of: Vec<String> = of.map(|ap| topology.mp_name(ap.memory_process)).collect();
        assert_eq!(of, ["mp0", "mp1", "mp2", "mp3"]);
        assert_eq!(cluster.in_application.len(), 4);
        assert_eq!(cluster.launch.unwrap().ranks_per_host(2), 4);
        let error = Cluster::of_ranks(&file, &seats(&[("n1", 1), ("n2", 3)]), Protection::None);
        let error = error.unwrap_err().join("\n");
        assert!(
            error.contains("needs at least 2 (an event manager, a link process)"),
            "{error}"
        );
        let one = Cluster::parse(&file).unwrap();
        assert_eq!(one.in_application.len(), 2);
    }

    #[test]
    fn groups_are_switches_or_listed() {
        let four = seats(&[("a1", 4), ("b1", 3), ("c2", 4), ("d2", 3)]);
        let by_switch = names("groups = \"switch\"", &four);
        assert_eq!(by_switch[2], "lp.s1");
        assert_eq!(by_switch.iter().filter(|n| n.starts_with("lp.")).count(), 2);
        let list = "[[launch.group]]\nname = \"left\"\nhosts = \"a1,b1\"\n[[launch.group]]\nname = \"right\"\nhosts = \"[c-c]2,c2,d2\"";
        let error = refused(list, &four);
        assert!(error.contains("brackets hold numbers"), "{error}");
        let list = list.replace("[c-c]2,", "");
        assert_eq!(names(&list, &four)[2], "lp.left");
        let error = refused(&list, &seats(&[("a1", 4), ("x9", 4)]));
        assert!(error.contains("host x9 is in no"), "{error}");
        let mut unknown = four;
        unknown[7].switch = None;
        let error = refused("groups = \"switch\"", &unknown);
        assert!(error.contains("switch of host c2 is not known"), "{error}");
    }

    #[test]
    fn what_keeps_ranks_from_being_a_cluster_is_said_of_every_host() {
        let error = refused("", &seats(&[("n1", 1), ("n2", 2), ("n3", 9)]));
        assert!(
            error.contains("host n1 has 1 ranks and needs at least 3"),
            "{error}"
        );
        assert!(error.contains("host n2 has 2 ranks"), "{error}");
        assert!(!error.contains("n3"), "{error}");
        let error = refused("", &seats(&[("n1", 2)]));
        assert!(error.contains("no rank is left"), "{error}");
    }

    #[test]
    fn a_rule_that_makes_no_sense_is_refused() {
        for (rule, why) in [
            (
                "memory_processes = 0",
                "memory_processes must be at least 1",
            ),
            ("application_processes = 0", "application_processes must"),
            ("network = \"10.0.0\"", "10.0.0"),
            ("port = 0", "port must not be 0"),
            ("deadline_s = 0", "deadline_s"),
            ("groups = \"rack\"", "rack"),
            (
                "groups = \"host\"\n[[launch.group]]\nname = \"a\"\nhosts = \"n1\"",
                "keep one",
            ),
            (
                "[[launch.group]]\nname = \"a\"\nhosts = \"n1\"\n[[launch.group]]\nname = \"b\"\nhosts = \"n[1-2]\"",
                "host n1 is in the groups a and b",
            ),
            ("[[emp]]\nname = \"emp0\"", "[launch] makes the processes"),
        ] {
            let error = Cluster::parse(&text(rule)).unwrap_err().join("\n");
            assert!(error.contains(why), "{rule}: {error}");
        }
    }

    #[test]
    fn who_binds_is_said_once() {
        let text = text("").replacen("insecure = true", "bind = \"cores\"", 1);
        let error = Cluster::parse(&text).unwrap_err().join("\n");
        assert!(
            error.contains("a launcher binds processes itself"),
            "{error}"
        );
    }

    #[test]
    fn without_a_launcher_it_is_a_cluster_on_this_machine() {
        let cluster = Cluster::parse(&text("memory_processes = 2\napplication_processes = 4"));
        let topology = cluster.unwrap().topology;
        assert_eq!(topology.application_processes().len(), 4);
        assert_eq!(topology.memory_processes().len(), 2, "no link process");
    }
}
