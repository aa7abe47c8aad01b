//! How much memory the declarations known to a role take.

use dosmos_proto::{ErrorCode, MAX_DECLARED_BYTES, Refusal, Variable};

use crate::core::cluster::Cluster;

/// The memory of some declarations together, with a bound.
#[derive(Debug, Default)]
pub(super) struct Declared {
    bytes: usize,
}

impl Declared {
    /// One more declaration; refused if it does not fit any more.
    pub(super) fn add(&mut self, cluster: &Cluster, variable: &Variable) -> Result<(), Refusal> {
        let bytes = self.bytes + variable.footprint();
        if bytes > MAX_DECLARED_BYTES {
            return Err(Refusal::new(
                ErrorCode::Limit,
                format!(
                    "with {} the declarations that {} knows would take {bytes} bytes, more than {MAX_DECLARED_BYTES}; \
                     use arrays instead of many variables, and short lists of owners, which repeat",
                    variable.spec().name(),
                    cluster.mp_name(cluster.me),
                ),
            ));
        }
        self.bytes = bytes;
        Ok(())
    }
}
