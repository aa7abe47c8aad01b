//! What is measured of a way to store records.

use serde::{Deserialize, Serialize};

/// What one run of one method measured.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Figures {
    /// Records written, and found again.
    pub(super) records: u64,
    /// Bytes before the storage engine: chunks, or rows with their keys.
    pub(super) encoded_bytes: u64,
    /// Bytes of all files after a clean close.
    pub(super) disk_bytes: u64,
    /// Encoding alone, without storing; none where rows are copied as they are.
    pub(super) encode_seconds: Option<f64>,
    pub(super) write_seconds: f64,
    pub(super) write_cpu_seconds: f64,
    pub(super) write_peak_bytes: u64,
    pub(super) scan_seconds: f64,
    pub(super) scan_cpu_seconds: f64,
    pub(super) scan_peak_bytes: u64,
}
