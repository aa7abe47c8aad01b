//! When an object goes from its memory process to an application process that has it to itself: the numbers that those who
//! decide it and those who predict it share (docs/design/consistency.md#exclusive-delegation).

/// Number of consecutive changes by message after which an application process asks for the object itself.
pub const CHANGES: u32 = 2;

/// Each time that is declined, twice as many are sent before the next; up to [`CHANGES`] times two to this power.
pub const MOST_DECLINED: u32 = 6;

/// A delegation in which the application process served fewer accesses was not worth it.
pub const WORTH: u64 = 4;

/// Most requests for a delegation that are declined after one that was not worth it.
pub const MOST_DECLINING: u32 = 64;
