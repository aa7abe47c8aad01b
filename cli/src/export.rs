//! `dosmos export`: stores of one run as a file that other tools read.

use std::fs::{File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, bail};
use dosmos_interchange::csv::Csv;
use dosmos_interchange::jsonl::Jsonl;
use dosmos_interchange::otlp::Otlp;
use dosmos_interchange::perfetto::Perfetto;
use dosmos_interchange::{Export, Exported, Run};
use dosmos_trace::store::StoreSource;
use tempfile::NamedTempFile;

use crate::args::{ExportArgs, ExportFormat};
use crate::output;
use crate::progress::Work;

pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let stores = dosmos_client::stores(&args.store, args.run_dir.as_deref())?;
    let file = Target::open(&args.output)?;
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
    let mut to = exporter(args.format, file.writer()?)?;
    let exported = dosmos_interchange::export(stores, &filter, &mut *to, |at| {
        work.at(|| format!("{} of {} records", at.records, at.of))
    })?;
    Ok(exported)
}

/// A writer of `format` to `out`.
///
/// # Errors
/// A format that this program was built without; a header that cannot be written.
pub fn exporter<'a>(
    format: ExportFormat,
    out: Box<dyn Write + Send + 'a>,
) -> anyhow::Result<Box<dyn Export + 'a>> {
    let out = BufWriter::with_capacity(1 << 16, out);
    Ok(match format {
        ExportFormat::Jsonl => Box::new(Jsonl::new(out)),
        ExportFormat::Csv => Box::new(Csv::new(out)),
        ExportFormat::Perfetto => Box::new(Perfetto::new(out)),
        ExportFormat::Otlp => Box::new(Otlp::new(out)),
        ExportFormat::Parquet => parquet(out)?,
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
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let beside = tempfile::Builder::new()
            .prefix(".dosmos-export-")
            // As any file the user makes: the system takes away what the user's mask says.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(parent);
        Ok(Self::Beside(beside.with_context(cannot)?))
    }

    pub(crate) fn writer(&self) -> anyhow::Result<Box<dyn Write + Send>> {
        Ok(match self {
            Self::Stdout => Box::new(output::stdout()),
            Self::Direct(file) => Box::new(file.try_clone()?),
            Self::Beside(file) => Box::new(file.as_file().try_clone()?),
        })
    }

    pub(crate) fn keep(self, path: &Path) -> anyhow::Result<()> {
        if let Self::Beside(file) = self {
            file.persist(path)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}
