//! The ways in which a run can break the contract, and what each breaks.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident, $name:literal, $rule:literal;)*) => {
        /// A way in which a run broke the contract of `docs/design/consistency.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Its name, as in every answer.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// What the contract says that was not so.
            pub fn rule(self) -> &'static str {
                match self {
                    $(Self::$kind => $rule,)*
                }
            }
        }
    };
}

kinds! {
    /// The sections of two processes overlap.
    TwoHolders, "two-holders", "a lock is held by one process or by none (rules 1 and 9)";
    /// The lock passed on before the release was complete.
    GrantedTooEarly, "granted-too-early", "a lock passes on when all copies have acknowledged the release (rules 1 and 3)";
    /// A later request was granted before an earlier one.
    OutOfTurn, "granted-out-of-turn", "requests are granted in the order in which they reach the owner (rule 1)";
    /// A process was granted what it holds.
    AcquiredTwice, "acquired-twice", "acquiring an object that the process already holds is refused (rule 1)";
    /// A release succeeded that no acquire came before.
    ReleasedWithoutSection, "released-without-section", "only the holder of a section releases it (rule 9)";
    /// A section that its owner had ended was released: its epoch counted again.
    OldSection, "epoch-reused", "a section that its owner ended is over: its epoch is refused (rule 9)";
    /// An acquire started from a version older than one released before it.
    StaleGrant, "stale-grant", "a section starts from what was released before it (rules 1 and 4)";
    /// Two releases made the same version.
    VersionReused, "version-reused", "each release makes a version of its own (rules 1 and 2)";
    /// A release made no later version than its section started from.
    VersionBack, "version-back", "a release makes a version later than the one its section started from (rule 2)";
    /// A write of a section is of another version than its release.
    TornRelease, "torn-release", "a release makes all writes of its section visible in one step (rules 2 and 4)";
    /// A copy at a memory process was read although a newer version had been released.
    StaleCopy, "stale-copy", "a read sees every write released before the reader's last acquire or barrier (rules 3 and 4)";
    /// The owner itself served an older version than one that was published before.
    LostWrite, "lost-write", "what was released or published stays (rules 2, 4 and 6)";
    /// A process did not read its own write.
    OwnWriteMissed, "own-write-missed", "a process reads its own writes (rules 2 and 6)";
    /// A process read an older version after a newer one.
    ReadBack, "read-back", "reads of one process never go back to an older version (rule 4)";
    /// A copy served an older version after a newer one.
    FracturedCopy, "fractured-copy", "a copy is of one version, and only replaced by a newer one (rule 4)";
    /// A version was seen that no release or publication can have made.
    UnmadeVersion, "unmade-version", "what is read was written (rules 4 and 6)";
    /// A process saw a version before it made it.
    ReadAhead, "read-ahead", "nobody sees a release before it began (rules 2 and 4)";
    /// An access in a section was served from before the section.
    StaleSection, "stale-section", "an access in a section sees the state that the section started from, or newer (rule 2)";
    /// A process left a barrier before another came.
    BarrierLeftEarly, "barrier-left-early", "a barrier orders everything before it before everything after it (rule 5)";
    /// A barrier opened without one of its participants.
    BarrierMissed, "barrier-missed", "a barrier opens when all participants have come (rule 5)";
    /// A process passed the same opening of a barrier twice, or an earlier one.
    BarrierRepeated, "barrier-repeated", "a process passes each opening of a barrier once (rule 5)";
    /// A copy was read in another group than the owner's.
    CopyAcrossGroups, "copy-across-groups", "no copy crosses groups (rule 3: the owner does not know of it)";
    /// Another process than the owner served an object.
    WrongOwner, "wrong-owner", "each object has one owner (rule 1)";
    /// Elements were accessed that the object does not have.
    OutsideObject, "outside-object", "an access outside the object is refused";
    /// The requester was told another version than the owner served.
    AnswerDiffers, "answer-differs", "what the owner served is what the process was told (rule 4)";
    /// The owner served a request more often than it was made.
    ServedTwice, "served-twice", "a request is served once (rule 6)";
    /// A request succeeded that its owner did not serve.
    NeverServed, "never-served", "an access of a remote object is served by its owner (rule 6)";
    /// Two accesses that conflict are ordered by no acquire, release or barrier: a fault of the program.
    DataRace, "data-race", "the contract of sequential consistency is for programs without data races (rule 6)";
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
