//! The runtime that commands run on.

/// Runs a command on a current-thread runtime.
pub(crate) fn block_on<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(command)
}
