//! A unit for systemd, the same on every host: the place of a host in the list is its rank.

use anyhow::{Context, bail};

use super::plan::Plan;

pub(super) fn unit(plan: &Plan<'_>) -> anyhow::Result<String> {
    let names = plan.hosts.names();
    let names = names.context("a unit for systemd needs the names of the hosts: --hosts a,b,c")?;
    let (name, port) = (plan.name, plan.port());
    let first = names.first().context("there is no host")?;
    let mut command = vec![
        plan.dosmos.clone(),
        "node".to_owned(),
        "--whole-host".to_owned(),
        "--cluster".to_owned(),
        format!("/etc/dosmos/{name}.toml"),
        "--".to_owned(),
    ];
    command.extend(plan.program.iter().cloned());
    let certificates = match plan.tls {
        None => "",
        Some(_) => {
            "#   the certificates of the hosts, tls/node, as /etc/dosmos/tls/node, readable by user dosmos alone;\n"
        }
    };
    let words: anyhow::Result<Vec<String>> = command.iter().map(|w| word(w)).collect();
    Ok(format!(
        "# Cluster {name} under systemd. On every host the same:
#   this file as /etc/systemd/system/dosmos-{name}.service, the cluster file as /etc/dosmos/{name}.toml,
{certificates}#   and in /etc/dosmos/{name}.env, readable by root alone, one line with the token of the run:
#   DOSMOS_TOKEN= and the output of: openssl rand -hex 16
# and a user: useradd --system dosmos. Then on every host: systemctl daemon-reload && systemctl start dosmos-{name}
[Unit]
Description=dosmos cluster {name}
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
User=dosmos
StateDirectory=dosmos
WorkingDirectory=%S/dosmos
Environment=DOSMOS_HOSTS={}
Environment=DOSMOS_RENDEZVOUS={first}:{port}
EnvironmentFile=/etc/dosmos/{name}.env
ExecStart={}
KillMode=mixed
TimeoutStopSec=40
",
        names.join(","),
        words?.join(" "),
    ))
}

/// A word of a command as systemd reads it back.
fn word(word: &str) -> anyhow::Result<String> {
    if word.contains('\n') {
        bail!("a word with a line break cannot stand in a unit: {word:?}");
    }
    let word = word.replace('%', "%%").replace('$', "$$");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return Ok(word);
    }
    Ok(format!(
        "\"{}\"",
        word.replace('\\', r"\\").replace('"', "\\\"")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_that_systemd_reads_back() {
        assert_eq!(word("./a").unwrap(), "./a");
        assert_eq!(word("a b$c").unwrap(), "\"a b$$c\"");
        assert_eq!(word("50%").unwrap(), "50%%");
        assert!(word("a\nb").is_err());
    }
}
