//! SQL over stores and running event managers, by Apache DataFusion.
//!
//! * [`Database`]: a run as a database; an [`Answer`] to a query.
//! * `records`, `exec`, `source`: the table `records`, its scan as a node of a plan, and what it reads.
//! * `columns`, `decode`, `scan`, `predicate`, `pushdown`: from chunks to Arrow arrays, of the rows and columns that a query needs.
//! * `tables`, `sheet`: the small tables.
//! * `cluster`, `worker`, `codec`, `channels`: a query divided among the event managers of a running run.
//! * `archive`: Parquet files.
//! * `show`: answers as a table, JSON or CSV.
//!
//! Invariant: an answer rests on every record that is there to be read, or says what it lacks; that conditions are worked out on
//! chunks changes no answer.

mod aggregate;
mod archive;
mod channels;
mod cluster;
mod codec;
mod columns;
mod commands;
mod database;
mod decode;
mod error;
mod exec;
mod names;
mod predicate;
mod pushdown;
mod records;
mod rule;
mod scan;
mod sheet;
mod show;
mod source;
mod tables;
mod worker;

/// Columns come and go by the megabyte: that of the system gives their pages back and asks for them again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub use archive::{Archived, archive};
pub use commands::WithSql;
pub use database::{Answer, Database, Settings};
pub use error::Error;
