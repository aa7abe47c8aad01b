//! Numbers that the format gives to records, types and kinds (`OTF2_Events.h` and `OTF2_Definitions.h` of OTF2 3, trace format 2).

/// First byte of records that files are made of.
pub(super) mod frame {
    pub(crate) const END_OF_CHUNK: u8 = 0;
    pub(crate) const END_OF_BUFFER: u8 = 1;
    pub(crate) const END_OF_FILE: u8 = 2;
    pub(crate) const CHUNK_HEADER: u8 = 3;
    pub(crate) const TIMESTAMP: u8 = 5;
    pub(crate) const ATTRIBUTES: u8 = 6;
    /// Second byte of a chunk: how its numbers are stored.
    pub(crate) const LITTLE_ENDIAN: u8 = 0x42;
    pub(crate) const BIG_ENDIAN: u8 = 0x23;
}

/// Definitions of a whole archive.
pub(super) mod definition {
    pub(crate) const CLOCK: u8 = 5;
    pub(crate) const PARADIGM: u8 = 6;
    pub(crate) const STRING: u8 = 10;
    pub(crate) const ATTRIBUTE: u8 = 11;
    pub(crate) const TREE_NODE: u8 = 12;
    pub(crate) const LOCATION_GROUP: u8 = 13;
    pub(crate) const LOCATION: u8 = 14;
    pub(crate) const REGION: u8 = 15;
    pub(crate) const GROUP: u8 = 18;
    pub(crate) const COMM: u8 = 22;
    pub(crate) const RMA_WIN: u8 = 24;
}

/// Definitions of one location.
pub(super) mod local {
    pub(crate) const MAPPING_TABLE: u8 = 5;
    pub(crate) const CLOCK_OFFSET: u8 = 6;
}

/// What a mapping table maps.
pub(super) mod mapping {
    pub(crate) const STRING: u8 = 0;
    pub(crate) const ATTRIBUTE: u8 = 1;
    pub(crate) const LOCATION: u8 = 2;
    pub(crate) const REGION: u8 = 3;
    pub(crate) const COMM: u8 = 6;
    pub(crate) const RMA_WIN: u8 = 8;
}

/// Events.
pub(super) mod event {
    pub(crate) const ENTER: u8 = 12;
    pub(crate) const LEAVE: u8 = 13;
    pub(crate) const MPI_SEND: u8 = 14;
    pub(crate) const MPI_ISEND: u8 = 15;
    pub(crate) const MPI_COLLECTIVE_BEGIN: u8 = 22;
    pub(crate) const MPI_COLLECTIVE_END: u8 = 23;
    pub(crate) const RMA_COLLECTIVE_BEGIN: u8 = 37;
    pub(crate) const RMA_COLLECTIVE_END: u8 = 38;
    pub(crate) const RMA_REQUEST_LOCK: u8 = 40;
    pub(crate) const RMA_ACQUIRE_LOCK: u8 = 41;
    pub(crate) const RMA_TRY_LOCK: u8 = 42;
    pub(crate) const RMA_RELEASE_LOCK: u8 = 43;
    pub(crate) const RMA_PUT: u8 = 46;
    pub(crate) const RMA_GET: u8 = 47;
    pub(crate) const RMA_ATOMIC: u8 = 48;
    pub(crate) const RMA_COMPLETE_BLOCKING: u8 = 49;
    pub(crate) const RMA_COMPLETE_NON_BLOCKING: u8 = 50;
    /// Events that are one compressed number, without a length before it: entering and leaving a region, four of MPI's
    /// requests, forking and three of tasks in OpenMP.
    pub(crate) const ONE_NUMBER: [u8; 10] = [ENTER, LEAVE, 16, 17, 20, 21, 24, 28, 29, 30];
}

/// Types of attributes.
pub(super) mod kind {
    pub(crate) const UINT8: u8 = 1;
    pub(crate) const UINT16: u8 = 2;
    pub(crate) const UINT32: u8 = 3;
    pub(crate) const UINT64: u8 = 4;
    pub(crate) const INT8: u8 = 5;
    pub(crate) const INT16: u8 = 6;
    pub(crate) const INT32: u8 = 7;
    pub(crate) const INT64: u8 = 8;
    pub(crate) const FLOAT: u8 = 9;
    pub(crate) const DOUBLE: u8 = 10;
    pub(crate) const STRING: u8 = 11;
    pub(crate) const LOCATION: u8 = 13;
}

/// What regions are for.
pub(super) mod role {
    pub(crate) const CRITICAL: u8 = 12;
    pub(crate) const ATOMIC: u8 = 14;
    pub(crate) const BARRIER: u8 = 15;
    pub(crate) const RMA: u8 = 29;
}

/// Kinds of groups.
pub(super) mod group {
    pub(crate) const LOCATIONS: u8 = 1;
    pub(crate) const COMM_LOCATIONS: u8 = 4;
    pub(crate) const COMM_GROUP: u8 = 5;
    pub(crate) const COMM_SELF: u8 = 6;
    /// A flag: members of a communicator's group are locations, not ranks.
    pub(crate) const GLOBAL_MEMBERS: u32 = 1;
    /// What came before the kind and the paradigm, until OTF2 1.2: the numbers of MPI's communicators.
    pub(crate) const OLD_MPI_GROUP: u8 = 4;
    pub(crate) const OLD_MPI_SELF: u8 = 5;
    pub(crate) const OLD_MPI_LOCATIONS: u8 = 6;
}

/// The paradigm of what is written here: one-sided access to shared memory, as in OpenSHMEM.
pub(super) const SHMEM: u8 = 13;
/// The paradigm of archives before others than MPI had communicators.
pub(super) const MPI: u8 = 4;
/// A location group that is a process, a location that is one of its threads.
pub(super) const PROCESS: u8 = 1;
pub(super) const THREAD: u8 = 1;
/// A collective operation that is a barrier.
pub(super) const BARRIER: u8 = 0;
/// A collective operation without a root; any reference to nothing.
pub(super) const NONE: u32 = u32::MAX;
/// Locks that nobody else may hold at the time.
pub(super) const EXCLUSIVE: u8 = 0;
/// An atomic operation that gives back what was there.
pub(super) const FETCH_AND_ACCUMULATE: u8 = 7;
/// A collective operation that waits for processes (1) and for memory (2).
pub(super) const SYNCHRONIZES: u32 = 3;
/// Files of a directory, not of a container.
pub(super) const FILES: u8 = 1;
/// Nothing is compressed by zlib.
pub(super) const NOT_COMPRESSED: u8 = 1;

/// Name of the anchor file, of the definitions, and of the directory of events, without extensions.
pub(super) const STEM: &str = "traces";
/// The property that says what an archive of this project contains: the lines of the JSONL format but for the records.
pub(super) const ABOUT: &str = "DOSMOS::ABOUT";
/// What the names of attributes begin with.
pub(super) const PREFIX: &str = "dosmos::";
