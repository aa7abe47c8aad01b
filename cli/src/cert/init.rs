//! An authority for a cluster file, and a certificate for each of its processes.

use std::net::IpAddr;

use anyhow::bail;
use dosmos_authority::{Folder, Request, Validity};
use dosmos_proto::transport::Address;
use dosmos_secure::files::{CA, CERTIFICATE, KEY, NAME};
use dosmos_secure::{Identity, Role};

use super::place::{AUTHORITY_DAYS, folder, read};
use crate::args::InitArgs;
use crate::config::{Cluster, Listen, OPERATOR};
use crate::output;

/// Who looks.
const OBSERVER: &str = "observer";

pub(super) fn run(args: &InitArgs) -> anyhow::Result<()> {
    let cluster = read(&args.authority)?;
    let path = folder(&args.authority);
    let days = args.validity.days;
    let holders = holders(&cluster)?;
    let authority = Folder::create(
        &path,
        cluster.topology.name(),
        Validity::days(AUTHORITY_DAYS),
    )?;
    for (name, role) in &holders {
        let request = Request {
            identities: vec![Identity::new(cluster.topology.name(), *role, name)?],
            hosts: hosts(&cluster, name, *role),
            validity: Validity::days(days),
        };
        authority.issue(name, &request)?;
    }
    let names: Vec<&str> = holders.iter().map(|(name, _)| name.as_str()).collect();
    output::note(&format!(
        "made the authority of {} in {}; its key, ca-key.pem, stays on this machine",
        cluster.topology.name(),
        path.display()
    ));
    output::note(&format!(
        "issued, valid for {days} days: {}",
        names.join(", ")
    ));
    if cluster.tls.is_none() {
        let below = args
            .authority
            .cluster
            .parent()
            .and_then(|dir| path.strip_prefix(dir).ok());
        let shown = below.unwrap_or(&path).display();
        output::note(&format!("add to {}:", args.authority.cluster.display()));
        output::text(&format!(
            "[tls]\nca = \"{shown}/{NAME}/{CA}\"\ncertificate = \"{shown}/{NAME}/{CERTIFICATE}\"\nkey = \"{shown}/{NAME}/{KEY}\"\n"
        ));
    }
    Ok(())
}

/// All processes of a cluster with their roles, an operator and an observer.
fn holders(cluster: &Cluster) -> anyhow::Result<Vec<(String, Role)>> {
    let topology = &cluster.topology;
    let emps = topology
        .event_managers()
        .iter()
        .map(|p| (&p.name, Role::EventManager));
    let mps = topology
        .memory_processes()
        .iter()
        .map(|p| (&p.name, Role::Memory));
    let aps = topology
        .application_processes()
        .iter()
        .map(|p| (&p.name, Role::Application));
    let mut all: Vec<(String, Role)> = emps
        .chain(mps)
        .chain(aps)
        .map(|(name, role)| (name.clone(), role))
        .collect();
    for (name, role) in [(OPERATOR, Role::Operator), (OBSERVER, Role::Observer)] {
        if all.iter().any(|(taken, _)| taken == name) {
            bail!(
                "a process is called {name}, as a certificate is for persons; rename the process"
            );
        }
        all.push((name.to_owned(), role));
    }
    Ok(all)
}

/// Names for tools that compare them with what they dialled: of the process itself, and of where it listens.
fn hosts(cluster: &Cluster, name: &str, role: Role) -> Vec<String> {
    if !role.serves() {
        return Vec::new();
    }
    let mut hosts = vec![name.to_owned()];
    if let Some(Listen::At(Address::Tcp(text))) = cluster.listen.get(name) {
        let host = text
            .rsplit_once(':')
            .map_or(text.as_str(), |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        // One that stands for all addresses of its host is none that anybody dials.
        if !host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified()) {
            hosts.push(host.to_owned());
        }
    }
    hosts
}
