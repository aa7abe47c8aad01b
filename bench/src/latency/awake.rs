//! Processors that do not sleep: waking a sleeping one takes longer than most operations.

use super::child::{Child, this_program};

/// A process on each processor that computes whenever nobody else wants to, until this is dropped. `chrt` is of util-linux.
pub(super) fn keep_awake() -> anyhow::Result<Vec<Child>> {
    let program = this_program()?;
    let spinner = ["chrt", "--idle", "0", &program, "latency", "--keep-awake"];
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (0..processors).map(|_| Child::start(&spinner)).collect()
}

/// Computes until it is ended.
pub(super) fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}
