//! `dosmos export`: stores of one run as a file that other tools read.

use std::fs::{File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dosmos_interchange::csv::Csv;
use dosmos_interchange::jsonl::Jsonl;
use dosmos_interchange::otf2::Otf2;
use dosmos_interchange::otlp::Otlp;
use dosmos_interchange::perfetto::Perfetto;
use dosmos_interchange::{Export, Exported, Run};
use dosmos_trace::store::StoreSource;
use tempfile::{NamedTempFile, TempDir};

use crate::args::{ExportArgs, ExportFormat};
use crate::output;
use crate::progress::Work;

pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let stores = dosmos_client::stores(&args.store, args.run_dir.as_deref())?;
    let file = match args.format.is_directory() {
        true => Target::directory(&args.output),
        false => Target::open(&args.output),
    }?;
    let mut work = Work::start();
    let exported = match write(&stores, args, &file, &mut work) {
        // Whoever reads has enough (`| head`).
        Err(e) if matches!(file, Target::Stdout) && output::is_closed(&e) => return Ok(()),
        written => written.with_context(|| args.output.display().to_string())?,
    };
    file.keep(&args.output)?;
    let n = exported.records;
    let path = args.output.display();
    work.done(&format!("{n} records to {path}: {}", work.rate(n)));
    for line in exported.lacking.reasons() {
        output::note(&format!("incomplete: {line}"));
    }
    for line in &exported.clocks {
        output::note(line);
    }
    if n == 0 {
        output::note("warning: no record matches the selection");
    }
    Ok(())
}

fn write(
    stores: &[StoreSource],
    args: &ExportArgs,
    file: &Target,
    work: &mut Work,
) -> anyhow::Result<Exported> {
    let catalog = Run::of(stores)?.catalog;
    let filter = args.select.scope().filter(&catalog, !args.accesses)?;
    let mut to = exporter(args.format, file.sink()?)?;
    let exported = dosmos_interchange::export(stores, &filter, &mut *to, |at| {
        work.at(|| format!("{} of {} records", at.records, at.of))
    })?;
    Ok(exported)
}

/// What an export is written to.
pub enum Sink<'a> {
    /// One file, or a stream.
    File(Box<dyn Write + Send + 'a>),
    /// An empty directory, for formats of [several files](ExportFormat::is_directory).
    Directory(PathBuf),
}

/// A writer of `format` to `sink`.
///
/// # Errors
/// A sink that is not of the format's kind; a format that this program was built without; a header that cannot be written.
pub fn exporter<'a>(format: ExportFormat, sink: Sink<'a>) -> anyhow::Result<Box<dyn Export + 'a>> {
    let out = match sink {
        Sink::File(out) => BufWriter::with_capacity(1 << 16, out),
        Sink::Directory(dir) if format.is_directory() => return Ok(Box::new(Otf2::new(&dir))),
        Sink::Directory(dir) => bail!("{} is a directory; name a file", dir.display()),
    };
    Ok(match format {
        ExportFormat::Jsonl => Box::new(Jsonl::new(out)),
        ExportFormat::Csv => Box::new(Csv::new(out)),
        ExportFormat::Perfetto => Box::new(Perfetto::new(out)),
        ExportFormat::Otlp => Box::new(Otlp::new(out)),
        ExportFormat::Parquet => parquet(out)?,
        ExportFormat::Otf2 => bail!("an OTF2 archive is a directory; name one"),
    })
}

#[cfg(feature = "parquet")]
fn parquet<'a>(out: impl Write + Send + 'a) -> anyhow::Result<Box<dyn Export + 'a>> {
    Ok(Box::new(dosmos_parquet::Parquet::new(out)?))
}

#[cfg(not(feature = "parquet"))]
fn parquet<'a>(_: impl Write + 'a) -> anyhow::Result<Box<dyn Export + 'a>> {
    bail!(
        "this dosmos was built without Parquet; build one with it: \
         cargo build --release --features parquet"
    )
}

/// Where the file goes: beside its name until it is whole, then there.
pub(crate) enum Target {
    Stdout,
    /// Something that is not a file, such as a pipe, is written at once.
    Direct(File),
    Beside(NamedTempFile),
    /// A directory, beside its name.
    Directory(TempDir),
}

impl Target {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        let cannot = || format!("cannot write {}", path.display());
        if path.is_dir() {
            bail!("{} is a directory; name a file", path.display());
        }
        if path.exists() && !path.is_file() {
            let file = File::options().write(true).open(path);
            return Ok(Self::Direct(file.with_context(cannot)?));
        }
        let beside = tempfile::Builder::new()
            .prefix(PREFIX)
            // As any file the user makes: the system takes away what the user's mask says.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(parent(path));
        Ok(Self::Beside(beside.with_context(cannot)?))
    }

    fn directory(path: &Path) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            bail!("an OTF2 archive is a directory, which cannot go to standard output; name one");
        }
        let empty = |dir: std::fs::ReadDir| dir.count() == 0;
        if path.exists() && !path.read_dir().is_ok_and(empty) {
            bail!(
                "{} exists; an archive is a new directory: name another one",
                path.display()
            );
        }
        let beside = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o777))
            .tempdir_in(parent(path));
        Ok(Self::Directory(beside.with_context(|| {
            format!("cannot write {}", path.display())
        })?))
    }

    pub(crate) fn writer(&self) -> anyhow::Result<Box<dyn Write + Send>> {
        Ok(match self {
            Self::Stdout => Box::new(output::stdout()),
            Self::Direct(file) => Box::new(file.try_clone()?),
            Self::Beside(file) => Box::new(file.as_file().try_clone()?),
            Self::Directory(dir) => bail!("{} is a directory", dir.path().display()),
        })
    }

    fn sink(&self) -> anyhow::Result<Sink<'static>> {
        match self {
            Self::Directory(dir) => Ok(Sink::Directory(dir.path().to_owned())),
            file => file.writer().map(Sink::File),
        }
    }

    pub(crate) fn keep(self, path: &Path) -> anyhow::Result<()> {
        let cannot = || format!("cannot write {}", path.display());
        match self {
            Self::Stdout | Self::Direct(_) => {}
            Self::Beside(file) => {
                file.persist(path).with_context(cannot)?;
            }
            Self::Directory(dir) => {
                std::fs::rename(dir.path(), path).with_context(cannot)?;
                // It stays: it has its name.
                let _ = dir.keep();
            }
        }
        Ok(())
    }
}

/// What the name of an export that is not whole begins with.
const PREFIX: &str = ".dosmos-export-";

/// The directory that a file is in.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
