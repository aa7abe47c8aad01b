//! How the author of a program tests it: the ranks are threads of the test, over real memory processes
//! (docs/guide/testing.md).
#![allow(clippy::unwrap_used)] // also in the helpers

use dsm_lib::testing::{self, Cluster, topology};
use dsm_lib::{Dsm, Error, ErrorCode, Result, Vector};

/// What is tested: each rank counts its numbers by their last digit; what all counted together.
fn histogram(dsm: &Dsm, numbers: impl Iterator<Item = u64>) -> Result<Vec<u64>> {
    let bins: Vector<u64> = dsm.vector("bins", 10).declare()?;
    let mut mine = [0; 10];
    numbers.for_each(|n| mine[n as usize % 10] += 1);
    bins.object(0)?.accumulate(&mine)?;
    dsm.barrier()?;
    Ok(bins.object(0)?.read()?.to_vec())
}

#[test]
fn ranks_count_together() {
    let all = testing::run(3, |dsm| {
        let first = 10 * dsm.rank() as u64;
        histogram(dsm, first..first + 10)
    });
    assert_eq!(all.unwrap(), vec![vec![3; 10]; 3]);
}

/// The same over two groups, where messages cross between link processes.
#[test]
fn groups_count_together() {
    let mps = [("mp0", 0), ("mp1", 1), ("lp0", 0), ("lp1", 1)];
    let cluster = Cluster::of(topology(&["/a", "/b"], &mps, &[0, 0, 1]).unwrap()).unwrap();
    assert_eq!(cluster.ranks(), 3);
    let all = cluster.run(|dsm| {
        let owner = dsm.memory_process().to_owned();
        Ok::<_, Error>((owner, histogram(dsm, 0..5)?[4]))
    });
    let all = all.unwrap();
    let owners: Vec<&str> = all.iter().map(|(owner, _)| owner.as_str()).collect();
    assert_eq!(owners, ["mp0", "mp0", "mp1"]);
    assert!(all.iter().all(|(_, fours)| *fours == 3), "{all:?}");
}

#[test]
fn the_error_is_that_of_the_rank_that_failed_first() {
    let error = testing::run(3, |dsm| {
        if dsm.rank() == 1 {
            dsm.open::<Vector<u64>>("no such variable").map(drop)?;
        }
        dsm.barrier()
    });
    let error = error.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UnknownVariable), "{error}");
}

#[test]
fn a_rank_that_panics_fails_the_test_with_its_own_words() {
    let panic = std::panic::catch_unwind(|| {
        testing::run(2, |dsm| {
            assert_eq!(dsm.rank(), 0, "rank 0 only");
            dsm.barrier().unwrap();
            Ok::<_, Error>(())
        })
    });
    let panic = panic.unwrap_err();
    let words = panic.downcast_ref::<String>().unwrap();
    assert!(words.contains("rank 0 only"), "{words}");
}

#[test]
fn a_cluster_without_that_rank_says_so() {
    let error = Cluster::start(2).unwrap().join(2).unwrap_err();
    assert!(
        error.to_string().contains("no rank 2: the cluster has 2"),
        "{error}"
    );
    let error = testing::run(0, Dsm::barrier).unwrap_err();
    assert!(
        error.to_string().starts_with("the cluster of the test"),
        "{error}"
    );
}
