//! The MPI programs: compiled from the C files of `bench/mpi`, run by `mpirun`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};
use dosmos_cli::output;
use tempfile::TempDir;

use super::programs::Program;

/// How processes communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Communication {
    TwoSided,
    OneSided,
}

impl Communication {
    pub(super) const ALL: [Self; 2] = [Self::TwoSided, Self::OneSided];
}

impl fmt::Display for Communication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TwoSided => "two-sided",
            Self::OneSided => "one-sided",
        })
    }
}

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Transport {
    Memory,
    Tcp,
}

impl Transport {
    pub(super) const ALL: [Self; 2] = [Self::Memory, Self::Tcp];

    /// The components of Open MPI that carry them.
    fn components(self) -> &'static str {
        match self {
            Self::Memory => "self,vader",
            Self::Tcp => "self,tcp",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "shared memory",
            Self::Tcp => "TCP",
        })
    }
}

/// The sources, by the name of the application.
const SOURCES: [(&str, &str); 4] = [
    ("sor", include_str!("../../mpi/sor.c")),
    ("is", include_str!("../../mpi/is.c")),
    ("spmv", include_str!("../../mpi/spmv.c")),
    ("fft", include_str!("../../mpi/fft.c")),
];
const COMMON: &str = include_str!("../../mpi/common.h");

/// The compiled programs and their inputs.
pub(super) struct Mpi {
    dir: TempDir,
    programs: Vec<Compiled>,
}

struct Compiled {
    name: String,
    parameters: Vec<String>,
}

impl Mpi {
    /// Compiles what there is for these programs; says why and returns nothing if this machine has no MPI.
    pub(super) fn prepare(programs: &[Program]) -> anyhow::Result<Option<Self>> {
        for tool in ["mpicc", "mpirun"] {
            if Command::new(tool).arg("--version").output().is_err() {
                output::note(&format!(
                    "no MPI: there is no {tool} here (Debian: apt install openmpi-bin libopenmpi-dev); going on without"
                ));
                return Ok(None);
            }
        }
        let dir = tempfile::Builder::new().prefix("dosmos-mpi").tempdir()?;
        // `mpicc` comes with `mpirun`, what it compiles against does not.
        let probe = dir.path().join("probe.c");
        std::fs::write(&probe, "#include <mpi.h>\n")?;
        let mut check = Command::new("mpicc");
        if !check
            .arg("-fsyntax-only")
            .arg(&probe)
            .output()?
            .status
            .success()
        {
            output::note(
                "no MPI: mpicc does not find mpi.h (Debian: apt install libopenmpi-dev); going on without",
            );
            return Ok(None);
        }
        std::fs::write(dir.path().join("common.h"), COMMON)?;
        let mut compiled = Self {
            dir,
            programs: Vec::new(),
        };
        let mut seen = BTreeSet::new();
        for program in programs {
            let source = SOURCES.iter().find(|(name, _)| *name == program.name());
            let input = dosmos_examples::input(program.name(), program.args())?;
            if let (Some((name, source)), Some(input)) = (source, input) {
                if !seen.insert(*name) {
                    bail!("{name} is named twice; the MPI program has one size (see --no-mpi)");
                }
                compiled.compile(name, source)?;
                std::fs::write(compiled.path(name, "input"), &input.data)?;
                compiled.programs.push(Compiled {
                    name: (*name).to_owned(),
                    parameters: input.parameters,
                });
            }
        }
        Ok(Some(compiled))
    }

    fn path(&self, name: &str, extension: &str) -> PathBuf {
        self.dir.path().join(name).with_extension(extension)
    }

    fn compile(&self, name: &str, source: &str) -> anyhow::Result<()> {
        let file = self.path(name, "c");
        std::fs::write(&file, source)?;
        // As the Rust programs are compiled: all optimisations, no instructions that this processor may have beyond the
        // common ones, and no fused operations, which would change results.
        let mut mpicc = Command::new("mpicc");
        mpicc.args(["-O3", "-ffp-contract=off", "-o"]);
        mpicc.arg(self.path(name, "run")).arg(&file).arg("-lm");
        said(&mut mpicc).map(drop)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn find(&self, name: &str) -> Option<&Compiled> {
        self.programs.iter().find(|p| p.name == name)
    }

    /// Runs a program; returns what it prints.
    pub(super) fn run(
        &self,
        name: &str,
        processes: usize,
        communication: Communication,
        transport: Transport,
    ) -> anyhow::Result<String> {
        let program = self.find(name).context("there is no such MPI program")?;
        let mut mpirun = Command::new("mpirun");
        mpirun.args(["-np", &processes.to_string()]);
        mpirun.args(["--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl"]);
        mpirun.arg(transport.components());
        // Where it runs as root, as in a container, mpirun asks to be told so twice; elsewhere it makes no difference.
        mpirun.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
        mpirun.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        if processes > processors {
            mpirun.arg("--oversubscribe");
        }
        mpirun.arg(self.path(name, "run"));
        mpirun.arg(communication.to_string());
        mpirun
            .arg(self.path(name, "input"))
            .args(&program.parameters);
        said(&mut mpirun)
    }
}

/// What a command prints, if it succeeds.
fn said(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", name.display()))?;
    if !output.status.success() {
        let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
        bail!(
            "{} {}: {}",
            name.display(),
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
