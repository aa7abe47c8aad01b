//! Programs on more data. How much more they compute is measured, with the plain sequential program on both: the operations that are
//! counted say too little where the data leaves a cache, or larger blocks are computed in less time per operation. But a part of what a
//! run computes is not in the sequential program (filling objects, taking out what was read), and goes by the data: how much is not
//! known, so the work is taken to be the geometric mean of what is counted and what is measured. Where a process
//! computes with its own part of the data only, the sequential program does too, in as many processes at once, since a part is in
//! caches where all would not be.

use std::collections::BTreeMap;

use anyhow::Context;
use dosmos_cli::output;
use dosmos_replay::Scale;

use super::programs::PROCESSES;
use crate::cost;
use crate::statistics::spread;

/// How much more work a program has on more data.
pub(super) type Work = BTreeMap<String, f64>;

/// Pairs of sequential runs: one of them tells little, as some take a tenth of a second.
const PAIRS: usize = 9;

/// A program on more data.
struct More {
    program: &'static str,
    /// These take the place of its own ones of the same names.
    arguments: &'static str,
    /// Operations of the program over what they were.
    counted: f64,
    /// Bytes of an access over what they were.
    content: f64,
    alone: Alone,
}

/// What the sequential program is run on.
enum Alone {
    /// On all of the data, as each process computes with that of others too, in one process.
    All,
    /// On the part of each process, in as many at once: with these arguments, and on more data these.
    Parts(&'static str, &'static str),
}
use Alone::{All, Parts};

/// Rows are divided among processes, and borders are columns long; FFT computes n log n of its square of points, LU the third power of its
/// rows, in as many blocks.
#[rustfmt::skip]
const SIZES: [More; 10] = [
    more("sor", "--rows 4000", [2.0, 1.0], Parts("--rows 500", "--rows 1000")),
    more("is", "--keys 2097152", [2.0, 1.0], Parts("--keys 262144", "--keys 524288")),
    more("barnes", "--bodies 32768", [2.14, 2.0], All),
    more("sphere", "--rows 768", [2.0, 1.0], Parts("--rows 96", "--rows 192")),
    more("water", "--molecules 1000", [4.0, 2.0], All),
    more("spmv", "--rows 26000", [2.0, 2.0], All),
    more("fft", "--side 2048", [4.4, 4.0], All),
    more("lu", "--n 2048 --block 128", [8.0, 4.0], All),
    more("radix", "--keys 2097152", [2.0, 2.0], Parts("--keys 262144", "--keys 524288")),
    more("edge", "--rows 2048", [2.0, 1.0], Parts("--rows 256", "--rows 512")),
];

const fn more(
    program: &'static str,
    arguments: &'static str,
    [counted, content]: [f64; 2],
    alone: Alone,
) -> More {
    More {
        program,
        arguments,
        counted,
        content,
        alone,
    }
}

fn find(program: &str) -> Option<&'static More> {
    let name = program.split_whitespace().next()?;
    SIZES.iter().find(|more| more.program == name)
}

/// The program on more data; none if nothing says what that is.
pub(super) fn on_more(program: &str) -> Option<String> {
    find(program).map(|more| with_arguments(program, more.arguments))
}

/// How a run on more data differs.
pub(super) fn scale(program: &str, work: &Work) -> anyhow::Result<Scale> {
    let known = find(program).zip(work.get(program));
    let (more, work) =
        known.context("nothing says how much more work this program has on more data")?;
    Ok(Scale {
        processes: None,
        work: *work,
        content: more.content,
    })
}

/// Measures the programs, in turns.
pub(super) fn work(programs: &[String]) -> anyhow::Result<Work> {
    let mut work = Work::new();
    for program in programs {
        let Some(more) = find(program) else {
            continue;
        };
        output::note(&format!("{program}: alone, and on more data"));
        let (before, after, processes) = more.alone(program);
        let seconds = |program: &str| {
            let times = cost::sequential(program, processes);
            times.with_context(|| format!("{program}, alone"))
        };
        let ratios = (0..PAIRS).map(|i| {
            let [first, second] = match i % 2 == 0 {
                true => [&before, &after],
                false => [&after, &before],
            };
            let (first, second) = (seconds(first)?, seconds(second)?);
            Ok(match i % 2 == 0 {
                true => second / first,
                false => first / second,
            })
        });
        let ratios: Vec<f64> = ratios.collect::<anyhow::Result<_>>()?;
        let measured = spread(ratios)[1];
        work.insert(program.clone(), (measured * more.counted).sqrt());
    }
    Ok(work)
}

impl More {
    /// The sequential programs before and after, and how many of them run at once.
    fn alone(&self, program: &str) -> (String, String, usize) {
        match self.alone {
            All => (
                program.to_owned(),
                with_arguments(program, self.arguments),
                1,
            ),
            Parts(before, after) => (
                with_arguments(program, before),
                with_arguments(program, after),
                PROCESSES,
            ),
        }
    }
}

/// A program with other values of some of its arguments.
fn with_arguments(program: &str, others: &str) -> String {
    let mut words: Vec<&str> = program.split_whitespace().collect();
    let others: Vec<&str> = others.split_whitespace().collect();
    for other in others.chunks(2) {
        let known = words.iter().position(|w| Some(w) == other.first());
        match (known.and_then(|at| words.get_mut(at + 1)), other) {
            (Some(value), [_, new]) => *value = new,
            (_, other) => words.extend(other),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::programs::PROGRAMS;
    use super::*;

    #[test]
    fn more_data_is_other_arguments_of_the_same_program() {
        let after = on_more(PROGRAMS[0]).unwrap();
        assert_eq!(after, PROGRAMS[0].replace("--rows 2000", "--rows 4000"));
        assert_eq!(
            with_arguments("lu --n 4", "--n 8 --block 2"),
            "lu --n 8 --block 2"
        );
        assert!(on_more("random --operations 4000").is_none());
        for more in SIZES {
            let name = more.program;
            let program = PROGRAMS.iter().find(|p| p.starts_with(name)).unwrap();
            let mut examples = dosmos_examples::catalog().iter();
            let example = examples.find(|app| app.name == name).unwrap();
            let words = with_arguments(program, more.arguments);
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            example.check(&words[1..]).unwrap();
            let (before, after, processes) = more.alone(program);
            assert!(before.len() <= after.len() && before != after, "{before}");
            assert_eq!(processes == 1, before == *program, "{before}");
        }
    }

    #[test]
    fn a_run_on_more_data_has_the_work_that_was_measured() {
        let program = "fft --side 1024 --iterations 8";
        let work = Work::from([(program.to_owned(), 3.7)]);
        let known = scale(program, &work).unwrap();
        assert_eq!((known.work, known.content), (3.7, 4.0));
        // Of this one it was not.
        scale("fft --side 512", &work).unwrap_err();
    }
}
