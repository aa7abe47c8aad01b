//! Another number of processes: who exchanges something with everyone has more to do the more there are.

use dosmos_proto::{ElementType, GroupId, Layout, MpId, ObjectId, VarId, Variable, VariableSpec};
use dosmos_trace::record::Op;

use crate::runs::{MS, Run, US, scaled};

const ROUNDS: u64 = 10;
const VARIABLE: VarId = VarId(7);

/// A variable of doubles, 1,000 columns in all.
fn variable(rows: u64, parts: (u32, u32), owners: &[u32]) -> Variable {
    let layout = Layout::new(ElementType::F64, (rows, 1_000), parts).expect("a layout");
    let spec = VariableSpec::new("shared", layout).expect("a declaration");
    let owners = owners.iter().map(|mp| MpId(*mp)).collect();
    Variable::new(VARIABLE, spec, owners, GroupId(0)).expect("a variable")
}

/// In each round each process writes objects of its own; after a barrier each reads objects of others, whole ones; then there is a
/// barrier again. `writes` and `reads` give the objects for each process.
fn rounds(variable: &Variable, writes: &[Vec<u32>], reads: &[Vec<u32>]) -> Run {
    let mut run = Run::of(writes.len() as u32);
    run.variables.push(variable.clone());
    for round in 0..ROUNDS {
        for (objects, op) in [(writes, Op::Write), (reads, Op::Read)] {
            for (ap, objects) in (0u32..).zip(objects) {
                for object in objects {
                    let owner = variable.owner(*object).0;
                    let record = run.does(ap, MS, op, owner, 10 * US);
                    record.object = ObjectId::new(VARIABLE, *object);
                    record.bytes = variable
                        .spec()
                        .layout()
                        .bytes_of(*object)
                        .expect("an object")
                        .into();
                }
            }
            run.barrier(2 * round as u32 + u32::from(op == Op::Read));
        }
    }
    run
}

/// Messages of the run with that many processes.
fn messages(run: &Run, processes: usize) -> u64 {
    scaled(run, processes).expect("a run").messages
}

/// The same by hand, where each of `n` processes writes and reads `writes` and `reads` objects per round: there and back to the own memory
/// process, and for a read to the owner too; two barriers; and each copy is dropped before it is read again.
fn by_hand(n: u64, writes: u64, reads: u64) -> u64 {
    let barriers = 2 * (2 * n + 2 * (n - 1));
    ROUNDS * (n * (2 * writes + 4 * reads) + barriers) + (ROUNDS - 1) * 2 * n * reads
}

#[test]
fn who_reads_what_everyone_has_reads_more_the_more_there_are() {
    let variable = variable(8, (2, 1), &[0, 1]);
    let run = rounds(&variable, &[vec![0], vec![1]], &[vec![1], vec![0]]);
    assert_eq!(messages(&run, 2), by_hand(2, 1, 1));
    assert_eq!(messages(&run, 4), by_hand(4, 1, 3));
    assert_eq!(messages(&run, 8), by_hand(8, 1, 7));
    // One alone has nobody to read from; of a hundred thousand each would read from all others.
    assert!(scaled(&run, 1).is_some() && scaled(&run, 100_000).is_none());
}

#[test]
fn what_one_process_did_many_can_do() {
    let mut run = Run::of(1);
    run.does(0, MS, Op::Write, 0, 10 * US);
    assert_eq!(messages(&run, 20_000), 20_000 * 2);
}

#[test]
fn with_fewer_processes_there_is_less_to_read_and_as_much_to_compute() {
    let variable = variable(8, (4, 1), &[0, 1, 2, 3]);
    let own: Vec<Vec<u32>> = (0..4).map(|i| vec![i]).collect();
    let others: Vec<Vec<u32>> = (0..4)
        .map(|i| (0..4).filter(|j| *j != i).collect())
        .collect();
    let run = rounds(&variable, &own, &others);
    assert_eq!(messages(&run, 4), by_hand(4, 1, 3));
    assert_eq!(messages(&run, 2), by_hand(2, 1, 1));
    let length = scaled(&run, 2).expect("a run").length;
    // Four milliseconds a round of each of four processes, by two.
    assert!(length.0.abs_diff(ROUNDS * 8 * MS) < MS, "{length}");
}

#[test]
fn who_exchanges_something_with_each_has_an_object_for_each() {
    // Object (i, j) is from process i to process j; what remains with a process is none of them.
    let variable = variable(1_000, (2, 2), &[0, 0, 1, 1]);
    let run = rounds(&variable, &[vec![1], vec![2]], &[vec![2], vec![1]]);
    assert_eq!(messages(&run, 2), by_hand(2, 1, 1));
    assert_eq!(messages(&run, 4), by_hand(4, 3, 3));
}

#[test]
fn who_reads_a_border_has_as_many_neighbours_as_before() {
    // Each process has an upper and a lower border, and reads the one of the other that is next to its own.
    let variable = variable(4, (4, 1), &[0, 0, 1, 1]);
    let run = rounds(&variable, &[vec![1], vec![2]], &[vec![2], vec![1]]);
    assert_eq!(messages(&run, 2), by_hand(2, 1, 1));
    // The recorded processes write one border each, so of those that are read here two are never written: no news of their copies.
    let no_news = (ROUNDS - 1) * 2 * 2;
    assert_eq!(messages(&run, 4), by_hand(4, 1, 1) - no_news);
}

#[test]
fn who_accesses_this_and_that_accesses_no_more_if_there_are_more() {
    // In each round both processes read twelve times, and each time another number of these from the other one.
    let variable = variable(8, (2, 1), &[0, 1]);
    let mut run = Run::of(2);
    run.variables.push(variable);
    let mut reads = 0;
    for round in 0..ROUNDS {
        for ap in 0..2 {
            for (owner, times) in [(1 - ap, round + 1), (ap, 11 - round)] {
                for _ in 0..times {
                    let record = run.does(ap, MS, Op::Read, owner, 10 * US);
                    record.object = ObjectId::new(VARIABLE, owner);
                    record.bytes = 8 * 4 * 1_000;
                    reads += u64::from(owner != ap);
                }
            }
        }
        run.barrier(round as u32);
    }
    let barriers = |n: u64| ROUNDS * (2 * n + 2 * (n - 1));
    // Two messages for each, and two more for those of others.
    assert_eq!(
        messages(&run, 2),
        2 * 12 * 2 * ROUNDS + 2 * reads + barriers(2)
    );
    // Of eight, seven in eight are of others.
    let all = 8 * 12 * ROUNDS;
    let expected = 2 * all + 2 * all * 7 / 8 + barriers(8);
    let here = messages(&run, 8);
    assert!(here.abs_diff(expected) < all / 20, "{here} {expected}");
}

#[test]
fn sections_of_everyone_are_whole_however_many_there_are() {
    // Each process adds something to an object of each other process, in a section: with more processes one after the other, and
    // no two of its sections at once.
    let variable = variable(8, (2, 1), &[0, 1]);
    let mut run = Run::of(2);
    run.variables.push(variable);
    run.barrier(0);
    for round in 1..=10 {
        for ap in 0..2 {
            for op in [Op::Acquire, Op::Write, Op::Release] {
                run.does(ap, MS, op, 1 - ap, 10 * US).object = ObjectId::new(VARIABLE, 1 - ap);
            }
        }
        run.barrier(round);
    }
    // There and back over two memory processes: four messages for each operation, three operations, three others.
    let barriers = |n: u64| 11 * (2 * n + 2 * (n - 1));
    assert_eq!(messages(&run, 2), 10 * 2 * 12 + barriers(2));
    assert_eq!(messages(&run, 4), 10 * 4 * 3 * 12 + barriers(4));
}
