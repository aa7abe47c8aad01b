//! What stands below the options of each command's help: an example, and the exit status.

pub(crate) const FIRST_STEPS: &str = "\
First steps:
  dosmos demo                                  run a program and watch it in the terminal
  dosmos demo --headless --app bad-group       run a program whose processes are in the wrong groups
  dosmos check                                 find out what was wrong with the last run
  dosmos report -o report.html                 write a page about the last run

Commands that read a run use the latest one (dosmos-run/latest) unless told otherwise.
Results go to standard output, messages to standard error.

Exit status: 0 success; 1 the program failed, or `check` or `verify` found something; 2 the command could not be \
carried out.";

pub(crate) const DEMO: &str = "\
Examples:
  dosmos demo
  dosmos demo --headless --app sor --processes 8 --groups 4 --seconds 10
  dosmos demo --app fft -- --size 256

Exit status: 0 the program has verified its result; 1 it failed or was interrupted by leaving the terminal; 2 the \
cluster could not be started.";

pub(crate) const UP: &str = "\
Examples:
  dosmos up --cluster cluster.toml -- ./my-program --size 1000
  dosmos up --cluster cluster.toml -- dosmos app sor --seconds 10
  dosmos up --cluster cluster.toml --hosts north,south -- ./my-program
  dosmos up --cluster cluster.toml --print slurm --hosts 4 -- ./my-program > job.sh

Many hosts: docs/guide/cluster.md. Exit status: 0 every application process ended with 0; 1 one of them failed; 2 the cluster could not be started.";

pub(crate) const NODE: &str = "\
Examples:
  srun dosmos node --cluster cluster.toml -- ./my-program
  mpirun -n 8 dosmos node --cluster cluster.toml -- ./my-program
  DOSMOS_HOSTS=north,south dosmos node --whole-host --cluster cluster.toml --run-dir run -- ./my-program
  dosmos node --cluster cluster.toml --name mp0 --run-dir /shared/run
  dosmos node --cluster cluster.toml --name ap0 --run-dir /shared/run -- ./my-program

Ranks come from DOSMOS_RANK, PMIx, Open MPI, PMI, Slurm, Flux or Kubernetes. With a [launch] section, they are the processes \
of its rule, and all end with the program. Otherwise ranks count the event managers first, then the memory and link processes, \
then the application processes, in the order of the file; memory processes and event managers run until SIGTERM or SIGINT.
Many hosts: docs/guide/cluster.md. Exit status: 0 it ended in order; 2 it could not run; that of the program for an \
application process.";

pub(crate) const TOP: &str = "\
Examples:
  dosmos top
  dosmos top --run-dir dosmos-run/latest --palette safe
  dosmos top --emp 127.0.0.1:7100 --emp 127.0.0.1:7101

Press ? for the keys, q to leave. Exit status: 0, or 2 if the run cannot be read.";

pub(crate) const QUERY: &str = "\
Examples:
  dosmos query variables --sort inter --top 10
  dosmos query histogram --var grid --from +1s --to +2s --buckets 50
  dosmos query events --var 'grid[3]' --op write --limit 20 --format json

Names of variables and processes may be patterns: * for any text, ? for one character, re: before a regular expression.
Times in tables have their unit; in JSON, and in CSV in columns named _ns, they are nanoseconds.
What is missing from an answer is printed on standard error, and in JSON under the key completeness.
Exit status: 0, or 2 if the run cannot be read.";

pub(crate) const RUNS: &str = "\
Examples:
  dosmos runs
  dosmos runs --prune --keep 10 --older-than 7d
  dosmos runs /shared/runs --format json

Exit status: 0, 1 if the question of --prune was not answered with yes, or 2 if the folder cannot be read.";

pub(crate) const CHECK: &str = "\
Examples:
  dosmos check
  dosmos check --run-dir dosmos-run/latest --fail-on deadlock,bottleneck:10%
  dosmos check --format json > before.json
  dosmos check --format otlp > findings.otlp.jsonl
  dosmos check --baseline before.json
  dosmos check --apply 1 -o cured.toml

The kinds of findings and their advice: docs/guide/findings.md.
Exit status: 0 everything was looked at and nothing was found; 1 something was found (that --fail-on and --baseline \
ask for); 2 something is missing, the run failed, or it cannot be read, whether something was found or not. With \
--apply: 0 the cluster file was written; 2 it was not.";

pub(crate) const VERIFY: &str = "\
Examples:
  dosmos verify
  dosmos verify --run-dir dosmos-run/latest --no-races
  dosmos verify --store imported --format json

What is proved, and how to read a counter-example: docs/guide/verify.md.
Exit status: 0 consistent: every record was looked at and they keep the contract; 1 violated: the records printed refute \
it, or show a data race; 2 undecided, or the run cannot be read.";

pub(crate) const DIFF: &str = "\
Example:
  dosmos diff dosmos-run/before dosmos-run/after

Exit status: 0, or 2 if a run cannot be read.";

pub(crate) const REPORT: &str = "\
Examples:
  dosmos report --run-dir dosmos-run/latest -o report.html
  dosmos report --format markdown

The page is one file without scripts, fonts or links to other hosts. Exit status: 0, or 2 if it cannot be written.";

pub(crate) const EXPORT: &str = "\
Examples:
  dosmos export --format perfetto -o run.pftrace
  dosmos export --format otlp -o run.otlp.jsonl
  dosmos export --format csv --var grid --accesses -o grid.csv
  dosmos export --format jsonl -o - | gzip > run.jsonl.gz
  dosmos export --format otf2 -o archive && vampir archive/traces.otf2

A run that is still being recorded cannot be exported. Exit status: 0, or 2 if the file cannot be written.";

pub(crate) const SQL: &str = "\
Examples:
  dosmos sql \"SELECT variable, op, count(*) AS n FROM accesses GROUP BY variable, op ORDER BY n DESC LIMIT 10\"
  dosmos sql \"SELECT ap, max(wait_ns) FROM records WHERE op = 'acquire' AND at_s < 1.5 GROUP BY ap\" --format json
  dosmos sql \"DESCRIBE records\"

Needs dosmos-sql beside dosmos or in the PATH: cargo install --path sql. Tables and columns: docs/guide/sql.md.
What is missing from an answer is in its last line, in JSON under the key completeness, and on standard error.
Exit status: 0, or 2 if the run cannot be read or the query cannot be carried out.";

pub(crate) const ARCHIVE: &str = "\
Examples:
  dosmos archive -o archive
  dosmos archive --store run/store/emp0 --by minute -o archive

Needs dosmos-sql beside dosmos or in the PATH: cargo install --path sql. Files and columns: docs/guide/sql.md.
The run appears in the archive when it is complete. Exit status: 0, or 2 if it cannot be written.";

pub(crate) const IMPORT: &str = "\
Example:
  dosmos import run.jsonl --store imported
  dosmos import scorep-run/traces.otf2 --store imported
  dosmos check --store imported

Exit status: 0, or 2 if a line is invalid or an archive damaged (no store is created then).";

pub(crate) const METRICS: &str = "\
Examples:
  dosmos metrics prometheus > prometheus.yml
  dosmos metrics grafana > dosmos.json

What is measured: docs/guide/metrics.md.";

pub(crate) const METRICS_PROMETHEUS: &str = "\
Examples:
  dosmos metrics prometheus > prometheus.yml
  dosmos metrics prometheus --run-dir run --tls tls/observer > prometheus.yml
  dosmos metrics prometheus --targets targets.json > prometheus.yml

The program has to be running: processes serve metrics as long as they run. Exit status: 0, or 2 if none serves metrics.";

pub(crate) const METRICS_TARGETS: &str = "\
Examples:
  dosmos metrics targets
  dosmos metrics targets --run-dir run -o targets.json

Prometheus reads the file again when it changes. Exit status: 0, or 2 if no process serves metrics.";

pub(crate) const METRICS_GRAFANA: &str = "\
Example:
  dosmos metrics grafana > dosmos.json

In Grafana: Dashboards, New, Import. Exit status: 0.";

pub(crate) const MODEL: &str = "\
Examples:
  echo '{\"P\": 32, \"W\": 1000, \"So\": 200, \"Sl\": 6}' | dosmos model lopc --input -
  dosmos model predict --what-if procs=16

Questions, fields and units of each model: docs/guide/models.md.
Exit status: 0, or 2 if the input cannot be read or the model has no answer to it.";

pub(crate) const MODEL_LOPC: &str = "\
Example:
  echo '{\"P\": 32, \"W\": 1000, \"So\": 200, \"Sl\": 6}' | dosmos model lopc --input - --plot lopc.svg

Times are in any unit, the same for all fields.
Exit status: 0, or 2 if the input cannot be read or the model has no answer to it.";

pub(crate) const MODEL_CLIENT_SERVER: &str = "\
Example:
  echo '{\"P\": 32, \"W\": 1000, \"So\": 131, \"Sl\": 40}' | dosmos model client-server --input -

Times are in any unit, the same for all fields.
Exit status: 0, or 2 if the input cannot be read or the model has no answer to it.";

pub(crate) const MODEL_GENERAL: &str = "\
Example:
  echo '{\"V\": [[0, 1], [1, 0]], \"W\": [300, 300], \"So\": 100, \"Sl\": 7}' | dosmos model general --input -

Times are in any unit, the same for all fields.
Exit status: 0, or 2 if the input cannot be read or the model has no answer to it.";

pub(crate) const MODEL_SIMULATE: &str = "\
Example:
  echo '{\"P\": 32, \"W\": 1000, \"So\": 200, \"Sl\": 6, \"cycles\": 20000}' | dosmos model simulate --input -

Times are in any unit, the same for all fields.
Exit status: 0, or 2 if the input cannot be read or the model has no answer to it.";

pub(crate) const MODEL_DVSM: &str = "\
Example:
  dosmos model inputs --for dvsm > run.json && dosmos model dvsm --input run.json

Times are in microseconds, sizes in bytes.
Exit status: 0, or 2 if the input cannot be read or the model has no answer to it.";

pub(crate) const MODEL_MEMHIER: &str = "\
Example:
  echo '{\"config\": \"C8\", \"program\": \"EDGE\", \"x_max\": 1048576}' | dosmos model memhier --input -

Times are in seconds, sizes in bytes.
Exit status: 0, or 2 if the input cannot be read or the model has no answer to it.";

pub(crate) const MODEL_CLUSTER: &str = "\
Example:
  dosmos model cluster --input budget.json

Times are in seconds, sizes in bytes.
Exit status: 0, or 2 if the input cannot be read or the model has no answer to it.";

pub(crate) const MODEL_FIT: &str = "\
Example:
  dosmos model inputs --for fit > trace.json && dosmos model fit --input trace.json

Sizes are in bytes.
Exit status: 0, or 2 if the input cannot be read or the model has no answer to it.";

pub(crate) const MODEL_INPUTS: &str = "\
Examples:
  dosmos model inputs
  dosmos model inputs --run-dir dosmos-run/latest --for lopc > lopc.json

Exit status: 0, or 2 if the run cannot be read or has nothing to make inputs from.";

pub(crate) const MODEL_PREDICT: &str = "\
Examples:
  dosmos model predict
  dosmos model predict --run-dir dosmos-run/latest --what-if speed=8,procs=16

Exit status: 0, or 2 if the run cannot be read or nothing can be predicted from it.";

pub(crate) const STORE: &str = "\
Example:
  dosmos store info dosmos-run/latest/store/emp-north";

pub(crate) const STORE_INFO: &str = "\
Example:
  dosmos store info dosmos-run/latest/store/emp-north

Exit status: 0, or 2 if the store cannot be read.";

pub(crate) const STORE_VERIFY: &str = "\
Example:
  dosmos store verify dosmos-run/latest/store/emp-north

Exit status: 0 the store is intact; 1 something is damaged; 2 the store cannot be read.";

pub(crate) const STORE_COMPACT: &str = "\
Example:
  dosmos store compact dosmos-run/latest/store/emp-north

Exit status: 0, or 2 if the store cannot be rewritten; it is unchanged then.";

pub(crate) const CERT: &str = "\
Examples:
  dosmos cert init --cluster cluster.toml
  dosmos cert issue --cluster cluster.toml --role observer alice
  dosmos cert rotate --cluster cluster.toml

Roles, files and how to use them: docs/guide/security.md. Exit status: 0, or 2 if nothing could be made.";

pub(crate) const CERT_INIT: &str = "\
Examples:
  dosmos cert init --cluster cluster.toml
  dosmos cert init --cluster cluster.toml --folder /secure/tls --days 30

Prints the [tls] to add to the cluster file. Exit status: 0, or 2 if nothing could be made.";

pub(crate) const CERT_ISSUE: &str = "\
Examples:
  dosmos cert issue --cluster cluster.toml --role observer alice
  dosmos cert issue --cluster cluster.toml --role memory,event-manager,application --any-name node

Who has the folder that is made uses it with DOSMOS_TLS or --tls. Exit status: 0, or 2 if nothing could be made.";

pub(crate) const CERT_ROTATE: &str = "\
Examples:
  dosmos cert rotate --cluster cluster.toml
  dosmos cert rotate --cluster cluster.toml mp0 alice
  dosmos cert rotate --cluster cluster.toml --authority-too
  dosmos cert rotate --cluster cluster.toml --forget-former

Exit status: 0, or 2 if nothing could be made.";

pub(crate) const CONFIG: &str = "\
Example:
  dosmos config check cluster.toml

Exit status: 0 the file is valid; 2 it is not, and every error is printed. Keys: docs/guide/cluster-file.md.";

pub(crate) const COMPLETIONS: &str = "\
Example:
  dosmos completions bash > ~/.local/share/bash-completion/completions/dosmos

The names behind --var and --ap are those of the run that the command line names, or of the latest one.
Exit status: 0, or 2 if the shell is not known.";

pub(crate) const MAN: &str = "\
Example:
  dosmos man ~/.local/share/man/man1

Exit status: 0, or 2 if the folder cannot be written.";

pub(crate) const APP: &str = "\
Examples:
  dosmos app --list
  dosmos app sor --help
  dosmos up --cluster cluster.toml -- dosmos app sor --seconds 10

Exit status: 0 the process has verified its result; 1 it has not.";

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use dosmos_documents::commands;

    use crate::args::Cli;

    /// Every command that has no subcommands, by its words.
    fn leaves(command: &clap::Command, above: &str) -> Vec<(String, String)> {
        let name = format!("{above}{} ", command.get_name());
        let below = command.get_subcommands().filter(|c| !c.is_hide_set());
        let below: Vec<_> = below.flat_map(|c| leaves(c, &name)).collect();
        if !below.is_empty() {
            return below;
        }
        let help = command.get_after_help().map(ToString::to_string);
        vec![(name, help.unwrap_or_default())]
    }

    #[test]
    fn every_command_has_an_example_that_is_understood() {
        for (name, help) in leaves(&Cli::command(), "") {
            let (_, examples) = help.split_once("Example").unwrap_or_default();
            let (_, examples) = examples.split_once('\n').unwrap_or_default();
            let examples = examples.split("\n\n").next().unwrap_or_default();
            let mut own = 0;
            for (line, words) in commands(&format!("```\n{examples}\n```"), &["dosmos "]) {
                let all = std::iter::once("dosmos".to_owned()).chain(words.clone());
                let parsed = Cli::try_parse_from(all);
                let shown = |e: &clap::Error| e.kind() == clap::error::ErrorKind::DisplayHelp;
                assert!(
                    parsed.is_ok() || parsed.as_ref().is_err_and(shown),
                    "{name}: {line}"
                );
                own += usize::from(format!("dosmos {} ", words.join(" ")).starts_with(&name));
            }
            assert!(own > 0, "{name}has no example");
            assert!(
                help.contains("Exit status: 0"),
                "{name}says nothing of its exit status"
            );
        }
    }
}
