//! What scripts and manifests are made of.

use std::path::Path;

use dosmos_proto::access::Files;

use crate::args::Hosts;
use crate::config::Launch;

/// Where rank 0 waits if the cluster file names no port and the hosts may share no directory.
const PORT: u16 = 7763;

/// What a script or manifest is made of.
pub(super) struct Plan<'a> {
    pub(super) name: &'a str,
    pub(super) launch: &'a Launch,
    pub(super) hosts: &'a Hosts,
    /// The cluster file: as it was named, and its text.
    pub(super) file: &'a Path,
    pub(super) text: String,
    /// This program.
    pub(super) dosmos: String,
    pub(super) program: &'a [String],
    pub(super) run_dir: Option<&'a Path>,
    pub(super) image: &'a str,
    /// Of a node, if the cluster file names certificates.
    pub(super) tls: Option<&'a Files>,
    /// Said on the command line, and not in the file.
    pub(super) insecure: bool,
}

impl Plan<'_> {
    /// Ranks that a host needs.
    pub(super) fn ranks(&self) -> usize {
        self.launch.ranks_per_host(self.hosts.count())
    }

    pub(super) fn port(&self) -> u16 {
        self.launch.port().unwrap_or(PORT)
    }

    /// The command of a rank, quoted for a shell.
    pub(super) fn node(&self, options: &[&str]) -> String {
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
