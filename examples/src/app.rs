//! The table of programs, and how one is started: arguments, session, output.

use std::path::PathBuf;

use clap::Args;
use dsm_lib::Dsm;

use crate::error::{Error, Result};
use crate::figures::Figures;
use crate::program::{Input, Program, Sequential, parse};
use crate::{
    barnes, counts, edge, exclusive, fft, groups, is, kernels, latency, litmus, lu, output,
    pathology, ping_pong, radix, random, raytrace, sor, sphere, spmv, suite, tally, water,
    workpile,
};

/// A program.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct App {
    /// What it is called.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    start: fn(&Dsm, &App, &[String]) -> Result<String>,
    check: fn(&App, &[String]) -> Result<()>,
    alone: Option<Alone>,
}

/// The sequential form of a program.
#[derive(Debug, Clone, Copy)]
struct Alone {
    run: fn(&App, &[String]) -> Result<Figures>,
    input: fn(&App, &[String]) -> Result<Option<Input>>,
}

impl App {
    /// Whether these arguments make sense to it.
    pub fn accepts(&self, args: &[String]) -> bool {
        self.check(args).is_ok()
    }

    /// As [`accepts`](Self::accepts).
    ///
    /// # Errors
    /// [`Error::Usage`] says what makes no sense, and what would.
    pub fn check(&self, args: &[String]) -> Result<()> {
        (self.check)(self, args)
    }

    /// Whether there is a sequential program that computes the same: see [`alone`].
    pub fn is_application(&self) -> bool {
        self.alone.is_some()
    }

    fn sequential(&self) -> Result<Alone> {
        let missing = || Error::Usage(format!("{} has no sequential form", self.name));
        self.alone.ok_or_else(missing)
    }

    /// The same program with its sequential form.
    const fn with_alone<P: Sequential>(self) -> Self {
        Self {
            alone: Some(Alone {
                run: |app, args| line::<P>(app, args)?.program.alone(),
                input: |app, args| Ok(line::<P>(app, args)?.program.input()),
            }),
            ..self
        }
    }
}

/// A command line: the program's own arguments and those that all have.
#[derive(Args)]
struct Line<P: Args> {
    #[command(flatten)]
    program: P,
    /// Write what this process did, as JSON lines, to FILE.<its name>.
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,
}

const CATALOG: &[App] = &[
    application::<sor::Sor>("sor", "red-black over-relaxation on a matrix split by rows"),
    application::<is::Is>(
        "is",
        "ranks integers by counting them in buckets that migrate",
    ),
    application::<barnes::Barnes>("barnes", "gravity: all read what all have moved"),
    application::<water::Water>(
        "water",
        "molecular dynamics: forces are summed under locks that migrate",
    ),
    application::<spmv::Spmv>(
        "spmv",
        "sparse matrix x vector, by objects or element by element",
    ),
    application::<workpile::Workpile>("workpile", "clients that fetch chunks of work from servers"),
    application::<fft::Fft>("fft", "six-step Fourier transform: a matrix is transposed"),
    application::<lu::Lu>("lu", "LU decomposition of a matrix dealt out in blocks"),
    application::<sphere::Sphere>(
        "sphere",
        "shallow water on a sphere split by latitude; writes a PNG",
    ),
    application::<radix::Radix>("radix", "radix sort with histograms and prefix sums"),
    application::<raytrace::Raytrace>(
        "raytrace",
        "ray tracing of tiles that are stolen; writes a PNG",
    ),
    application::<edge::Edge>(
        "edge",
        "edge detection on a picture split by rows; writes a PNG",
    ),
    app::<groups::Bad>("bad-group", "readers in one group, the owner in another"),
    app::<groups::Good>("good-group", "bad-group, cured: owner and readers together"),
    app::<ping_pong::Shared>("ping-pong", "two processes take turns at one variable"),
    app::<ping_pong::Split>("ping-pong-split", "ping-pong, cured: an object for each"),
    app::<pathology::Pathology>(
        "pathology",
        "one kind of bad sharing, or its cure: what dosmos check finds",
    ),
    app::<litmus::Litmus>("litmus", "the consistency contract, tried out"),
    app::<random::Random>(
        "random",
        "random operations on variables of all kinds, counted",
    ),
    app::<exclusive::Exclusive>(
        "exclusive",
        "sections on one variable and nothing else: a monitor's worst case",
    ),
    app::<tally::Tally>(
        "tally",
        "a count with replicas, which goes on when its owner is lost",
    ),
    app::<tally::Kept>("kept", "sections with 0, 1 and 2 replicas: what they cost"),
    app::<suite::Suite>("suite", "several programs, one after another"),
    app::<latency::Latency>("latency", "what each operation costs"),
    app::<kernels::Kernels>("kernels", "unit grains beside competitors: MAD, SAD, BAD"),
];

const fn app<P: Program>(name: &'static str, about: &'static str) -> App {
    App {
        name,
        about,
        start: start::<P>,
        check: |app, args| line::<P>(app, args).map(drop),
        alone: None,
    }
}

const fn application<P: Program + Sequential>(name: &'static str, about: &'static str) -> App {
    app::<P>(name, about).with_alone::<P>()
}

/// All programs.
pub fn catalog() -> &'static [App] {
    CATALOG
}

/// Runs program `name` as the application process that the environment says (see
/// [`Dsm::from_env`]), and prints what it has to say. `--help` prints the arguments.
///
/// # Errors
/// If the program is unknown, its arguments make no sense, memory fails, or the result is wrong.
pub fn run(name: &str, args: &[String]) -> Result<(), Error> {
    let app = find(name)?;
    if args.iter().any(|a| a == "--help" || a == "-h") {
        output::print(&help(app, args));
        return Ok(());
    }
    // Before joining: a process that joins and leaves would fail the others.
    (app.check)(app, args)?;
    let dsm = Dsm::from_env()?;
    let said = (app.start)(&dsm, app, args)?;
    dsm.close()?;
    output::print(&said);
    Ok(())
}

/// Runs program `name` on a session; returns what it has to say.
///
/// # Errors
/// As [`run`].
pub fn run_on(dsm: &Dsm, name: &str, args: &[String]) -> Result<String, Error> {
    let app = find(name)?;
    (app.start)(dsm, app, args)
}

/// The computation of program `name` by a plain sequential program with the same kernel: no session, nothing shared.
///
/// # Errors
/// If the program is unknown or no application, or its arguments make no sense.
pub fn alone(name: &str, args: &[String]) -> Result<Figures, Error> {
    let app = find(name)?;
    (app.sequential()?.run)(app, args)
}

/// What program `name` would compute with, for a program in another language that computes the same; none if none does.
///
/// # Errors
/// As [`alone`].
pub fn input(name: &str, args: &[String]) -> Result<Option<Input>, Error> {
    let app = find(name)?;
    (app.sequential()?.input)(app, args)
}

fn find(name: &str) -> Result<&'static App> {
    CATALOG
        .iter()
        .find(|app| app.name == name)
        .ok_or_else(|| Error::Unknown {
            name: name.to_owned(),
            known: CATALOG
                .iter()
                .map(|a| a.name)
                .collect::<Vec<_>>()
                .join(", "),
        })
}

fn start<P: Program>(dsm: &Dsm, app: &App, args: &[String]) -> Result<String> {
    let line = line::<P>(app, args)?;
    let said = line.program.run(dsm)?;
    if let Some(base) = &line.counts {
        counts::write(dsm, base)?;
    }
    Ok(said)
}

fn line<P: Args>(app: &App, args: &[String]) -> Result<Line<P>> {
    parse(app.name, app.about, args)
}

/// What clap says of `--help`, which to it is a kind of error.
fn help(app: &App, args: &[String]) -> String {
    match (app.check)(app, args) {
        Err(e) => e.to_string(),
        Ok(()) => app.about.to_owned(),
    }
}

impl Program for suite::Suite {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        self.each(dsm, run_on)
    }
}
