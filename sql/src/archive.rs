//! `dosmos archive`: the records of a run as Parquet files that data frames and databases read, divided into directories in the way
//! that Hive began: `run=RUN/op=OPERATION/part-0.parquet`. What the name of a directory says is not in the file.
//!
//! Guarantees: a run appears in the archive when it is complete; memory holds one row group per file that is open; every file says
//! which run it is of and what is missing.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::compute::{cast, filter_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::cast::{as_int64_array, as_string_array};
use datafusion::error::{DataFusionError, Result};
use dosmos_cli::args::Division;
use dosmos_proto::Nanos;
use dosmos_trace::query::{Completeness, Filter};
use dosmos_trace::store::StoreSource;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::Error;
use crate::columns::Column;
use crate::exec::of_chunk;
use crate::names::Names;
use crate::predicate::Predicate;
use crate::scan::Scan;
use crate::sheet::external;

/// Rows of a row group.
const ROW_GROUP: usize = 1 << 17;
const NANOS_PER_MINUTE: i64 = 60_000_000_000;

/// What was written.
#[derive(Debug)]
pub struct Archived {
    /// The directory of the run.
    pub path: PathBuf,
    /// Number of records.
    pub records: u64,
    /// Number of files.
    pub files: usize,
    /// What is missing.
    pub completeness: Completeness,
}

/// Writes the run that `stores` are of into the archive in `dir`.
///
/// # Errors
/// If the run is in the archive already, or a file cannot be written.
pub fn archive(
    stores: &[Arc<StoreSource>],
    whole: &Completeness,
    dir: &Path,
    by: Division,
) -> Result<Archived, Error> {
    let Some(first) = stores.first() else {
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        let what = "there is no store to archive".to_owned();
        return Err(Error::Io { what, source });
    };
    let run = first.identity().run;
    let path = dir.join(format!("run={run}"));
    let io = |what: &str, path: &Path| {
        let what = format!("{what} {}", path.display());
        move |source| Error::Io { what, source }
    };
    if path.exists() {
        let source = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        return Err(io("remove it to archive the run again:", &path)(source));
    }
    std::fs::create_dir_all(dir).map_err(io("cannot create", dir))?;
    // Readers of archives skip names that begin with a dot.
    let beside = tempfile::Builder::new()
        .prefix(".dosmos-archive-")
        .tempdir_in(dir)
        .map_err(io("cannot write in", dir))?;
    let mut files = Files::new(beside.path().to_owned(), by);
    let zero = stores
        .iter()
        .filter_map(|s| s.describe().extent)
        .map(|e| e.from);
    let zero = zero.min().unwrap_or_default();
    let written = stores.iter().try_for_each(|store| files.add(store, zero));
    let engine = |e| Error::of_engine(e, &[]);
    written.map_err(engine)?;
    let records = files.records;
    let mut completeness = whole.clone();
    for store in stores {
        // What reading found damaged.
        completeness.damaged = completeness.damaged.max(store.completeness().damaged);
        completeness.corrupt_chunks = completeness
            .corrupt_chunks
            .max(store.completeness().corrupt_chunks);
    }
    let number = files
        .close(&run.to_string(), &completeness)
        .map_err(engine)?;
    let kept = beside.keep();
    std::fs::rename(&kept, &path).map_err(io("cannot create", &path))?;
    Ok(Archived {
        path,
        records,
        files: number,
        completeness,
    })
}

/// The files that are open, by the value that they are for.
struct Files {
    dir: PathBuf,
    by: Division,
    schema: SchemaRef,
    open: BTreeMap<String, ArrowWriter<File>>,
    records: u64,
}

impl Files {
    fn new(dir: PathBuf, by: Division) -> Self {
        let fields = Column::ALL.into_iter().filter(|c| kept(*c, by));
        Self {
            dir,
            schema: Arc::new(Schema::new(fields.map(field).collect::<Vec<_>>())),
            by,
            open: BTreeMap::new(),
            records: 0,
        }
    }

    /// Adds the records of a store.
    fn add(&mut self, store: &StoreSource, zero: Nanos) -> Result<()> {
        let names = Names::of(&store.describe(), zero);
        let scan = Scan::new(Column::ALL.to_vec(), Predicate::default());
        let everything = Filter {
            everything: true,
            ..Filter::default()
        };
        for chunk in store.view().chunks(&everything) {
            if let Some(batch) = of_chunk(store.view(), &chunk, &scan, &names)? {
                self.records += batch.num_rows() as u64;
                self.divide(&batch, zero)?;
            }
        }
        Ok(())
    }

    /// Writes each row to the file that it belongs to.
    fn divide(&mut self, batch: &RecordBatch, zero: Nanos) -> Result<()> {
        let keys = match self.by {
            Division::Op => {
                let ops = cast(column(batch, Column::Op)?, &DataType::Utf8)?;
                let ops = as_string_array(&ops)?;
                ops.iter()
                    .map(|op| op.unwrap_or_default().to_owned())
                    .collect::<Vec<_>>()
            }
            Division::Minute => {
                let starts = as_int64_array(column(batch, Column::StartNs)?)?;
                let zero = crate::decode::signed(zero.0);
                let minute = |at: i64| ((at - zero) / NANOS_PER_MINUTE).to_string();
                starts.values().iter().map(|at| minute(*at)).collect()
            }
        };
        let mut different: Vec<&String> = keys.iter().collect();
        different.sort_unstable();
        different.dedup();
        let stored = stored(batch, &self.schema)?;
        for key in different {
            let rows: BooleanArray = keys.iter().map(|k| Some(k == key)).collect();
            let rows = filter_record_batch(&stored, &rows)?;
            self.writer(key)?.write(&rows).map_err(external)?;
        }
        Ok(())
    }

    fn writer(&mut self, key: &str) -> Result<&mut ArrowWriter<File>> {
        if !self.open.contains_key(key) {
            let name = match self.by {
                Division::Op => "op",
                Division::Minute => "minute",
            };
            let dir = self.dir.join(format!("{name}={key}"));
            std::fs::create_dir_all(&dir)?;
            let file = File::create(dir.join("part-0.parquet"))?;
            let properties = WriterProperties::builder()
                .set_compression(Compression::SNAPPY)
                .set_max_row_group_row_count(Some(ROW_GROUP))
                .set_created_by(concat!("dosmos ", env!("CARGO_PKG_VERSION")).to_owned())
                .build();
            // Types as Parquet has them: a description of Arrow's own would hide the metadata from readers.
            let options = ArrowWriterOptions::new()
                .with_properties(properties)
                .with_skip_arrow_metadata(true);
            let schema = self.schema.clone();
            let writer = ArrowWriter::try_new_with_options(file, schema, options);
            self.open.insert(key.to_owned(), writer.map_err(external)?);
        }
        let missing = || DataFusionError::Internal(format!("no file for {key}"));
        self.open.get_mut(key).ok_or_else(missing)
    }

    /// Ends all files; how many there are.
    fn close(self, run: &str, completeness: &Completeness) -> Result<usize> {
        let lacking = serde_json::to_string(completeness).map_err(external)?;
        let number = self.open.len();
        for (_, mut writer) in self.open {
            let entry = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
            writer.append_key_value_metadata(entry("dosmos.run", run));
            writer.append_key_value_metadata(entry("dosmos.completeness", &lacking));
            writer.close().map_err(external)?;
        }
        Ok(number)
    }
}

/// Whether a column is in the files: not if the name of their directory says it.
fn kept(column: Column, by: Division) -> bool {
    !(by == Division::Op && column == Column::Op)
}

/// A column as other tools know its type: texts as texts, times in microseconds, which all of them read.
fn field(column: Column) -> Field {
    let schema = crate::columns::schema_of(&[column]);
    let field = schema.field(0);
    let kind = match field.data_type() {
        DataType::Utf8View => DataType::Utf8,
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        other => other.clone(),
    };
    field.clone().with_data_type(kind)
}

fn stored(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = schema.fields().iter().map(|field| {
        let found = batch.column_by_name(field.name());
        let missing = || DataFusionError::Internal(format!("no column {}", field.name()));
        Ok(cast(found.ok_or_else(missing)?, field.data_type())?)
    });
    let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
    Ok(RecordBatch::try_new(schema.clone(), columns)?)
}

fn column(batch: &RecordBatch, column: Column) -> Result<&ArrayRef> {
    let missing = || DataFusionError::Internal(format!("no column {}", column.name()));
    batch.column_by_name(column.name()).ok_or_else(missing)
}
