//! Performance models of shared-memory programs, and a simulator to check them against.
//!
//! | module | model | unit of time |
//! |---|---|---|
//! | [`lopc`] | contention of blocking request/reply programs (LoPC) | any one unit |
//! | [`sim`] | event-driven simulation of the machine LoPC describes | the same unit |
//! | [`dvsm`] | page-based DSM phase model and its what-ifs | microseconds |
//! | [`memhier`] | memory hierarchies of machines and clusters | seconds |
//! | [`inputs`] | from measurements and traces to the models' inputs | microseconds |
//!
//! Guarantees: everything is a pure function of its arguments (no I/O, no clock, no ambient
//! randomness; the simulator draws from a generator seeded by its input); every input is checked and
//! a bad one is a [`ModelError`] that names the field; no result is NaN, infinite or negative where
//! the quantity cannot be. Input and output types serialise under the symbols of the papers
//! (`P`, `W`, `So`, …), so that a JSON document of inputs reads as the papers do.

pub mod dvsm;
mod error;
pub mod inputs;
pub mod lopc;
pub mod memhier;
mod numeric;
pub mod sim;

pub use error::ModelError;
