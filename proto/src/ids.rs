//! Identifiers. Processes, event managers and groups are numbered by their position in the cluster
//! file; variables by the directory that declared them; an object is a variable and an index.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The number as an index into a table of such things.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(
    /// An application process.
    ApId(u32), "ap#"
);
id!(
    /// A memory or link process.
    MpId(u32), "mp#"
);
id!(
    /// An event manager process.
    EmpId(u32), "emp#"
);
id!(
    /// A group of processes and variables.
    GroupId(u32), "group#"
);
id!(
    /// A shared variable, or (in barrier records) a named barrier.
    VarId(u32), "var#"
);

/// One object of a variable: the unit of ownership, copying, locking and tracing.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ObjectId {
    /// The variable.
    pub var: VarId,
    /// Position of the object in the variable, row-major over the parts.
    pub index: u32,
}

impl ObjectId {
    /// The object `index` of variable `var`.
    pub fn new(var: VarId, index: u32) -> Self {
        Self { var, index }
    }

    /// The number used on the wire: `variable << 32 | index`.
    pub fn to_wire(self) -> u64 {
        u64::from(self.var.0) << 32 | u64::from(self.index)
    }

    /// The object with this number. Every number is one; whether it exists is the owner's to say.
    pub fn from_wire(number: u64) -> Self {
        Self::new(VarId((number >> 32) as u32), number as u32)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.var, self.index)
    }
}
