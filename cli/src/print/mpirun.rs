//! A script that runs Open MPI's `mpirun`.

use super::plan::{Plan, quoted};

pub(super) fn script(plan: &Plan<'_>) -> String {
    let (name, ranks, hosts) = (plan.name, plan.ranks(), plan.hosts.count());
    let mut options = vec![
        format!("--map-by ppr:{ranks}:node"),
        // Processes that wait need no core of their own.
        "--bind-to none".to_owned(),
        format!("-n {}", ranks * hosts),
    ];
    let mut before = String::new();
    if let Some(names) = plan.hosts.names() {
        let slots: Vec<String> = names.iter().map(|n| format!("{n}:{ranks}")).collect();
        options.push(format!("--host {}", quoted(&slots.join(","))));
        if let (Some(port), Some(first)) = (plan.launch.port(), names.first()) {
            // Without a shared directory: rank 0 is on the first host.
            before = format!(
                ": \"${{DOSMOS_TOKEN:?set it to 32 random hexadecimal digits, for example of: openssl rand -hex 16}}\"\n\
                 export DOSMOS_RENDEZVOUS={}\n",
                quoted(&format!("{first}:{port}"))
            );
            options.push("-x DOSMOS_TOKEN -x DOSMOS_RENDEZVOUS".to_owned());
        }
    }
    let shared = match before.is_empty() {
        true => "; the current directory must be shared by the hosts",
        false => "",
    };
    format!(
        "#!/bin/sh
# Cluster {name} under Open MPI's mpirun{shared}. Further options of mpirun: sh THIS-FILE --hostfile FILE
{before}exec mpirun {} \"$@\" {}
",
        options.join(" "),
        plan.node(&[]),
    )
}
