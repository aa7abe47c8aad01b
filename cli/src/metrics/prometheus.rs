//! A configuration of Prometheus (<https://prometheus.io/docs/prometheus/latest/configuration/configuration/>). Values are
//! written as JSON, which is YAML too.

use std::path::Path;

use anyhow::{Context, bail};
use dosmos_proto::access::Files;
use dosmos_secure::files::NAME;
use serde::Serialize;

use super::targets::{Target, Watched};

/// What Prometheus shows to processes, and expects of them.
#[derive(Debug)]
pub(super) struct Certificates {
    files: Files,
    /// Each process has a certificate with its own name; otherwise they have one with the names of their hosts.
    of_processes: bool,
}

impl Certificates {
    /// Those in `folder`, or that the environment names; none if the cluster uses none.
    pub(super) fn of(watched: &Watched, folder: Option<&Path>) -> anyhow::Result<Option<Self>> {
        let cluster_file = watched.launch.metadata().map(|m| m.cluster_file.as_str());
        let of_cluster = cluster_file.and_then(certificate_in);
        let files = match folder {
            Some(folder) => Some(Files::in_folder(folder)),
            None => Files::from_env()?,
        };
        let Some(files) = files else {
            if of_cluster.is_some() {
                bail!(
                    "the cluster of {} uses certificates; name the folder of one for Prometheus with --tls DIR (`dosmos cert \
                     issue --role observer` makes one)",
                    watched.run
                );
            }
            return Ok(None);
        };
        for path in [&files.ca, &files.certificate, &files.key] {
            let there = path.metadata();
            there.with_context(|| format!("the certificate for Prometheus: {}", path.display()))?;
        }
        let of_processes = of_cluster.is_some_and(|path| path.contains(NAME));
        Ok(Some(Self {
            files,
            of_processes,
        }))
    }

    /// The lines of a job that scrapes `process`, or all of them.
    fn lines(&self, process: Option<&str>) -> anyhow::Result<String> {
        let mut text = "    scheme: https\n    tls_config:\n".to_owned();
        for (key, path) in [
            ("ca_file", &self.files.ca),
            ("cert_file", &self.files.certificate),
            ("key_file", &self.files.key),
        ] {
            text += &format!("      {key}: {}\n", yaml(&absolute(path)?)?);
        }
        if let Some(name) = process {
            text += &format!("      server_name: {}\n", yaml(name)?);
        }
        Ok(text)
    }
}

/// The path of certificates in the text of a cluster file.
fn certificate_in(text: &str) -> Option<String> {
    let file: toml::Table = text.parse().ok()?;
    let path = file.get("tls")?.get("certificate")?.as_str()?;
    Some(path.to_owned())
}

/// A configuration that scrapes what is `watched`, or what `file` lists.
pub(super) fn configuration(
    watched: &Watched,
    file: Option<&Path>,
    certificates: Option<&Certificates>,
) -> anyhow::Result<String> {
    let file = file.map(absolute).transpose()?;
    let file = file.as_deref();
    if let Some(file) = file.filter(|file| !file.ends_with(".json")) {
        bail!(
            "Prometheus reads targets as JSON only from files whose names end in .json; {file} does not"
        );
    }
    let mut text = "# For `prometheus --config.file=FILE`, or the part below scrape_configs to add to another one. Written by\n\
                    # `dosmos metrics prometheus`.\n\
                    global:\n  scrape_interval: 5s\nscrape_configs:\n"
        .to_owned();
    let all = watched.targets();
    match certificates {
        // The name to expect of a process can only be said of a job.
        Some(c) if c.of_processes => {
            for target in all {
                let name = &target.labels.process;
                text += &job(
                    &format!("dosmos-{name}"),
                    std::slice::from_ref(target),
                    file,
                )?;
                if file.is_some() {
                    text += &only(name)?;
                }
                text += &c.lines(Some(name))?;
            }
        }
        certificates => {
            text += &job("dosmos", all, file)?;
            if let Some(c) = certificates {
                text += &c.lines(None)?;
            }
        }
    }
    Ok(text)
}

/// Prometheus takes paths as relative to its configuration.
fn absolute(path: &Path) -> anyhow::Result<String> {
    let absolute = std::path::absolute(path);
    let absolute = absolute.with_context(|| path.display().to_string())?;
    Ok(absolute.display().to_string())
}

fn job(name: &str, targets: &[Target], file: Option<&str>) -> anyhow::Result<String> {
    let mut text = format!(
        "  - job_name: {}\n    # The pages name their process and role themselves, as the targets do.\n    honor_labels: true\n",
        yaml(&name)?
    );
    if let Some(file) = file {
        text += &format!(
            "    file_sd_configs:\n      - files: [{}]\n        refresh_interval: 5s\n",
            yaml(&file)?
        );
        return Ok(text);
    }
    text += "    static_configs:\n";
    for target in targets {
        text += &format!("      - {}\n", yaml(target)?);
    }
    Ok(text)
}

/// Of all that a file lists, process `name` only.
fn only(name: &str) -> anyhow::Result<String> {
    let mut pattern = String::new();
    for c in name.chars() {
        if c.is_ascii_punctuation() {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    Ok(format!(
        "    relabel_configs:\n      - {{source_labels: [process], regex: {}, action: keep}}\n",
        yaml(&pattern)?
    ))
}

fn yaml<T: Serialize + ?Sized>(value: &T) -> anyhow::Result<String> {
    Ok(serde_json::to_string(value)?)
}
