//! A disk that is full and has room again: nothing acknowledged is lost, and the writer goes on without being opened again.

use std::path::Path;

use dosmos_proto::MpId;
use dosmos_testseeds::child;
use dosmos_trace::query::Filter;
use dosmos_trace::store::{StoreError, StoreSource, StoreWriter};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};

use crate::common;

/// Set in the process whose files may not grow.
const CHILD: &str = "DOSMOS_TEST_FULL_DISK";

fn fill_and_go_on(dir: &Path) {
    // The signal that comes with the limit ends a process that does not block it.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    signals.thread_block().unwrap();
    let identity = common::identity();
    let all = common::records(3, 40_000);
    let mut batches = all.chunks(500).zip(1..);
    let (mut writer, _) = StoreWriter::open(dir, &identity).unwrap();
    let (_, most) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    for round in 1..=3u64 {
        // Also the beginning of the next file does not fit.
        writer.rotate_at(if round == 2 { 1 } else { u64::MAX });
        let room = if round == 2 { 100 } else { round * 40_000 };
        setrlimit(Resource::RLIMIT_FSIZE, room, most).unwrap();
        let (failed, sequence) = batches
            .by_ref()
            .find(|(part, sequence)| writer.commit(&common::commit(*sequence, part)).is_err())
            .unwrap();
        for _ in 0..3 {
            let error = writer
                .commit(&common::commit(sequence, failed))
                .unwrap_err();
            assert!(matches!(error, StoreError::Io { .. }), "{error}");
            let stored = (sequence as usize - 1) * 500;
            let found = writer.view().records(&Filter::default(), 0);
            assert_eq!(found.records, all[..stored]);
            assert!(found.completeness.is_complete());
        }
        setrlimit(Resource::RLIMIT_FSIZE, most, most).unwrap();
        writer.commit(&common::commit(sequence, failed)).unwrap();
    }
    for (part, sequence) in batches {
        writer.commit(&common::commit(sequence, part)).unwrap();
    }
    writer.close().unwrap();
    let source = StoreSource::open(dir).unwrap();
    assert_eq!(source.view().records(&Filter::default(), 0).records, all);
    assert!(source.completeness().is_complete());
    drop(source);
    let (_, recovered) = StoreWriter::open(dir, &identity).unwrap();
    assert_eq!(recovered.marks()[&MpId(0)].sequence, 80);
}

#[test]
fn a_full_disk_needs_no_restart() {
    if let Some(dir) = std::env::var_os(CHILD) {
        return fill_and_go_on(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    child::succeeds(&mut child::again(CHILD, store));
}
