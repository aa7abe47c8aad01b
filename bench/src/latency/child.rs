//! Processes that are started to measure with or beside.

use std::process;

/// A process that ends with this.
pub(super) struct Child(pub(super) process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
