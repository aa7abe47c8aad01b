//! `dosmos import`: a store made of a JSONL file, or of an OTF2 archive.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, bail};
use dosmos_interchange::jsonl::{self, BadLines};
use dosmos_interchange::otf2;

use crate::args::ImportArgs;
use crate::output;
use crate::progress::Work;

pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    let extension = args.file.extension();
    match args.file.is_dir() || extension.is_some_and(|e| e == "otf2") {
        true => archive(args),
        false => lines(args),
    }
}

/// Reads an OTF2 archive.
fn archive(args: &ImportArgs) -> anyhow::Result<()> {
    if args.skip_bad {
        bail!(
            "--skip-bad is for the lines of JSONL; an OTF2 archive is read as a whole or not at all"
        );
    }
    let mut work = Work::start();
    let imported = otf2::import(&args.file, &args.store, |at| {
        work.at(|| {
            format!(
                "{} records of {} of {} events",
                at.records, at.events, at.of
            )
        })
    });
    // Errors name the file themselves.
    let imported = imported?;
    let n = imported.records;
    let store = args.store.display();
    work.done(&format!("{n} records to {store}: {}", work.rate(n)));
    for note in imported.notes {
        output::note(&note);
    }
    Ok(())
}

/// Reads JSONL.
fn lines(args: &ImportArgs) -> anyhow::Result<()> {
    let (input, size): (Box<dyn BufRead>, Option<u64>) = if args.file == Path::new("-") {
        (Box::new(io::stdin().lock()), None)
    } else {
        let cannot = || format!("cannot read {}", args.file.display());
        let file = File::open(&args.file).with_context(cannot)?;
        let meta = file.metadata().with_context(cannot)?;
        let size = meta.is_file().then_some(meta.len());
        (Box::new(BufReader::with_capacity(1 << 16, file)), size)
    };
    let bad_lines = match args.skip_bad {
        true => BadLines::Skip,
        false => BadLines::Refuse,
    };
    let mut work = Work::start();
    let imported = jsonl::import(input, &args.store, bad_lines, |at| {
        work.at(|| match size {
            Some(size) if size > 0 => {
                let percent = at.bytes.saturating_mul(100) / size;
                format!("{} records, {percent} %", at.records)
            }
            _ => format!("{} records, {} lines", at.records, at.lines),
        })
    });
    let imported = imported.with_context(|| args.file.display().to_string())?;
    let n = imported.records;
    let store = args.store.display();
    work.done(&format!("{n} records to {store}: {}", work.rate(n)));
    if let Some(first) = imported.first_skipped {
        let skipped = imported.skipped;
        work.done(&format!("{skipped} bad lines were skipped; {first}"));
    }
    Ok(())
}
