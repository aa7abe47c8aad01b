//! Shared variables for a parallel program: the application's side of dosmos.
//!
//! A program started by `dosmos up` declares shared variables and works on them, wherever they lie.
//! All its processes run the same code (SPMD) and differ by their rank:
//!
//! ```no_run
//! use dsm_lib::{CopyPolicy, Dsm};
//!
//! fn main() -> Result<(), dsm_lib::Error> {
//!     let dsm = Dsm::from_env()?;
//!     // A matrix, one band of rows for each process, kept by the memory process it talks to.
//!     let grid = dsm.matrix::<f64>("grid", 1000, 1000)
//!         .split_rows(dsm.size())
//!         .owner_per_rank()
//!         .policy(CopyPolicy::Update)
//!         .declare()?;
//!     let total = dsm.scalar::<f64>("total").declare()?;
//!
//!     let band = grid.object(dsm.rank())?;
//!     band.write(&vec![dsm.rank() as f64; band.len()])?;
//!     dsm.barrier()?; // now all see what all wrote
//!     let next = grid.object((dsm.rank() + 1) % dsm.size())?.read()?; // a native slice
//!     let sum: f64 = next.iter().sum();
//!
//!     let mut section = total.acquire()?; // one process at a time
//!     let before = section.read()?;
//!     section.write(before + sum)?;
//!     section.release()?; // now all see it
//!
//!     dsm.barrier()?;
//!     println!("{}: the total is {}", dsm.name(), total.read()?);
//!     dsm.close()
//! }
//! ```
//!
//! # What memory promises
//!
//! Release consistency. A section ([`Object::acquire`] to [`Section::release`]) is exclusive; what was
//! written in it is seen by all when the release has returned. A read outside a section sees everything
//! released before the reader's last acquire or barrier, perhaps something newer, never a mixture of
//! two releases. A write outside a section is seen by others at the writer's next release or barrier at
//! the latest. A program without data races sees a sequentially consistent memory.
//!
//! # In place
//!
//! To compute on an object rather than on single elements, take it as a slice: [`Object::read`] gives a shared
//! one to read, [`Object::edit`] one to change outside a section, [`Section::values_mut`] one to change in a
//! section. What was changed, and only that, is written in one message. [`Object::reader`] is for one that is read again and again.
//!
//! # Structs
//!
//! Elements are numbers or `bool`. A variable of structs ([`Dsm::structs`], `#[derive(Shared)]`) is a matrix of bytes, whose handles take and
//! give structs.
//!
//! # Blocking and asynchronous
//!
//! Every operation comes in two forms: `read()` blocks, `read_async()` returns a [`Call`], a future
//! that works on any executor. Requests are pipelined: a call is on its way when it is made, and several
//! may be under way. Between two calls under way at once, nothing is promised about the order in which
//! they take effect; await the first to order them.
//!
//! # Failure
//!
//! Nothing hangs: every operation has a deadline ([`Dsm::with_deadline`]), and when the connection is
//! lost, everything under way fails with [`Error::Lost`]. An acquire whose time is over names the process that holds the lock.
//!
//! # Tests
//!
//! With the feature `testing`, `testing::run` runs the ranks of a program as threads of a unit test.

mod barrier;
mod cache;
mod call;
mod carrier;
mod client;
mod counts;
mod declare;
mod draft;
mod driver;
mod dsm;
mod edit;
mod element;
#[cfg(feature = "within")]
mod ending;
mod error;
mod fence;
mod haste;
#[cfg(feature = "simulation")]
mod host;
#[cfg(feature = "simulation")]
pub mod hosted;
mod io;
mod lock;
mod lock_words;
mod member;
mod meter;
mod object;
mod open_edits;
mod operation;
mod outbox;
mod place;
mod posted;
mod reader;
mod section;
mod session;
mod settings;
mod shared;
mod structs;
#[cfg(feature = "testing")]
pub mod testing;
mod values;
mod variable;
mod view;
mod within;

pub use call::Call;
pub use counts::{Counts, ObjectCounts, OpCounts};
pub use declare::Declaration;
pub use dsm::Dsm;
pub use edit::Edit;
pub use element::{Element, Number};
pub use error::{Error, Result};
pub use fence::{Fence, FencingToken, OutOfDate};
pub use object::Object;
pub use place::MemoryProcess;
pub use reader::Reader;
pub use section::{ReleaseFailed, ScalarSection, Section};
pub use settings::{ENV_DEADLINE, ENV_MEMORY_PROCESS, ENV_NAME, ENV_WITHIN, Settings};
pub use structs::{Shared, SharedField, StructObject, StructSection, Structs};
pub use values::Exchange;
pub use variable::{Handle, Matrix, Scalar, Variable, Vector};
pub use view::View;

pub use dsm_derive::Shared;

pub use dosmos_proto::access::{Credentials, CredentialsError, ENV_TLS, Files};
pub use dosmos_proto::token::{ENV_TOKEN, ENV_TOKEN_FILE, Token};
pub use dosmos_proto::transport::Address;
pub use dosmos_proto::{
    Cache, CopyPolicy, ElementType, ErrorCode, Layout, LockKind, ObjectId, Region, VarId,
};
