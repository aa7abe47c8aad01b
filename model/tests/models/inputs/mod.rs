//! From a run to models' inputs and predictions, on runs whose every figure is known.

mod changes;
mod lab;
mod lopc;
mod phases;
