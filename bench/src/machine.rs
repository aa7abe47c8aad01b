//! The machine that measurements were made on.

/// Processors, their model, and the kernel.
pub(crate) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|l| {
        l.strip_prefix("model name")?
            .split_once(": ")
            .map(|(_, m)| m.to_owned())
    });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{cores} cores, {}, Linux {}",
        model.unwrap_or_else(|| "unknown processor".to_owned()),
        read("/proc/sys/kernel/osrelease").trim()
    )
}
