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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::topology;
    use dosmos_proto::{ElementType, GroupId, Layout, MpId, VarId, VariableSpec};

    #[test]
    fn what_fits_is_counted_and_what_does_not_is_refused() {
        let layout = Layout::new(ElementType::U64, (1, 1 << 20), (1, 1 << 20)).unwrap();
        let owners = (0..60_000).map(|i| MpId(i % 3 * (1 + i / 7))).collect();
        let spec = VariableSpec::new("x", layout).unwrap();
        let variable = Variable::new(VarId(1), spec, owners, GroupId(0)).unwrap();
        let cluster = Cluster::new(topology(&["/a"], 1, 1), MpId(0));
        let fit = MAX_DECLARED_BYTES / variable.footprint();
        let mut declared = Declared::default();
        for _ in 0..fit {
            assert_eq!(declared.add(&cluster, &variable), Ok(()));
        }
        for _ in 0..2 {
            let refusal = declared.add(&cluster, &variable).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::Limit);
            assert!(
                refusal
                    .message
                    .contains("with x the declarations that mp0 knows")
            );
        }
        // A small one still fits.
        let small = VariableSpec::new("y", layout).unwrap();
        let small = Variable::new(VarId(2), small, vec![MpId(0)], GroupId(0)).unwrap();
        assert_eq!(declared.add(&cluster, &small), Ok(()));
    }
}
