//! Traces as Apache Parquet: the columns of the CSV export, typed, compressed (Snappy), in row groups.
//!
//! A null is what does not apply: a barrier's `variable`, anything else's `barrier`, `first` and `end` without a range.
//! Metadata of the file says which run it is (`dosmos.run`) and what is missing (`dosmos.completeness`), both as JSON.
//!
//! Guarantees: memory holds one row group; the file is readable only when it is whole.

mod columns;

use std::io::{self, Write};
use std::sync::Arc;

use dosmos_interchange::{Export, Run};
use dosmos_trace::query::Completeness;
use dosmos_trace::record::Record;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::json;

use columns::Columns;

/// Rows of a row group: some 20 MB in memory.
pub const ROW_GROUP: usize = 1 << 17;

/// The columns and their types. Times are nanoseconds.
pub const SCHEMA: &str = "
message record {
  REQUIRED INT64 start (TIMESTAMP(NANOS, true));
  REQUIRED INT64 duration_ns (INTEGER(64, false));
  REQUIRED INT64 wait_ns (INTEGER(64, false));
  REQUIRED INT64 service_ns (INTEGER(64, false));
  REQUIRED BYTE_ARRAY op (STRING);
  OPTIONAL BYTE_ARRAY variable (STRING);
  REQUIRED INT64 object (INTEGER(64, false));
  OPTIONAL BYTE_ARRAY barrier (STRING);
  REQUIRED BYTE_ARRAY ap (STRING);
  REQUIRED BYTE_ARRAY mp (STRING);
  REQUIRED BYTE_ARRAY owner (STRING);
  REQUIRED BYTE_ARRAY origin (STRING);
  REQUIRED BOOLEAN optimized;
  REQUIRED INT64 bytes (INTEGER(64, false));
  REQUIRED INT64 version (INTEGER(64, false));
  OPTIONAL INT64 first (INTEGER(64, false));
  OPTIONAL INT64 end (INTEGER(64, false));
  REQUIRED BYTE_ARRAY side (STRING);
  REQUIRED BOOLEAN sampled;
  REQUIRED BOOLEAN failed;
  REQUIRED BOOLEAN waiting;
  REQUIRED BOOLEAN pending;
  REQUIRED BOOLEAN in_process;
  REQUIRED INT64 count (INTEGER(64, false));
}";

/// Writes Parquet.
pub struct Parquet<W: Write + Send> {
    /// None when the file is finished.
    out: Option<SerializedFileWriter<W>>,
    columns: Columns,
}

impl<W: Write + Send> Parquet<W> {
    /// Writes to `out`, which need not be buffered.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn new(out: W) -> io::Result<Self> {
        let schema = parse_message_type(SCHEMA).map_err(failed)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("dosmos ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let out = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties));
        Ok(Self {
            out: Some(out.map_err(failed)?),
            columns: Columns::default(),
        })
    }

    fn row_group(&mut self) -> io::Result<()> {
        let Some(out) = &mut self.out else {
            return Ok(());
        };
        let mut group = out.next_row_group().map_err(failed)?;
        self.columns.write(&mut group).map_err(failed)?;
        group.close().map_err(failed)?;
        Ok(())
    }
}

impl<W: Write + Send> Export for Parquet<W> {
    fn begin(&mut self, _: &Run) -> io::Result<()> {
        Ok(())
    }

    fn record(&mut self, run: &Run, record: &Record, pending: bool) -> io::Result<()> {
        self.columns.add(&run.names, record, pending);
        match self.columns.rows() < ROW_GROUP {
            true => Ok(()),
            false => self.row_group(),
        }
    }

    fn end(&mut self, run: &Run, lacking: &Completeness) -> io::Result<()> {
        if self.columns.rows() > 0 {
            self.row_group()?;
        }
        let Some(mut out) = self.out.take() else {
            return Ok(());
        };
        let about = json!({
            "name": run.catalog.topology.name(),
            "start_ns": run.start.0,
            "end_ns": run.end.0,
        });
        let entry = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
        out.append_key_value_metadata(entry("dosmos.run", about.to_string()));
        let lacking = serde_json::to_string(lacking)?;
        out.append_key_value_metadata(entry("dosmos.completeness", lacking));
        out.finish().map_err(failed)?;
        Ok(())
    }
}

fn failed(e: ParquetError) -> io::Error {
    io::Error::other(e)
}
