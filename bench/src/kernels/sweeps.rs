//! The sweeps of docs/design/models.md#kernels-sweeps, as experiments of the `kernels` program.

use dosmos_examples::kernels::{Critical, Experiment, Grain, Memory, Place, Random, Stride, Value};
use dosmos_proto::LockKind;

/// One attribute varied, everything else fixed.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// What is varied.
    pub(crate) varied: &'static str,
    pub(crate) points: Vec<Point>,
}

/// One value of it, in one series.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) series: String,
    /// The value; what cannot be put in numbers is counted from 0.
    pub(crate) x: f64,
    pub(crate) experiment: Experiment,
}

impl Sweep {
    fn new(name: &'static str, about: &'static str, varied: &'static str) -> Self {
        Self {
            name,
            about,
            varied,
            points: Vec::new(),
        }
    }

    fn add(&mut self, series: &str, x: f64, mut experiment: Experiment) {
        experiment.name = format!("{}.{series}.{x}", self.name);
        self.points.push(Point {
            series: series.to_owned(),
            x,
            experiment,
        });
    }
}

fn constant(n: u64) -> Value {
    Value::Constant(n)
}

fn memory(t: u8, p: u64, s: Stride, m: u64, c: u64) -> Grain {
    Grain {
        g_m: Some(Memory {
            t,
            p,
            s,
            m: constant(m),
        }),
        g_c: (c > 0).then(|| constant(c)),
        g_s: None,
    }
}

fn by(s: u64) -> Stride {
    Stride::By(constant(s))
}

fn section(c_s: u64, m_s: u64, f_s: f64, c: u64) -> Grain {
    Grain {
        g_m: None,
        g_c: (c > 0).then(|| constant(c)),
        g_s: Some(Critical {
            c_s: constant(c_s),
            m_s: constant(m_s),
            f_s,
        }),
    }
}

fn homogeneous(words: usize, test: Grain, n: &[usize]) -> Experiment {
    Experiment {
        name: String::new(),
        words,
        test,
        competitors: None,
        n: n.to_vec(),
        lock: LockKind::Queue,
        place: Place::Remote,
    }
}

const ANYWHERE: Stride = Stride::Anywhere(Random::Random);
/// The published size that flushes caches.
const MANY: usize = 128 * 1024;

/// All sweeps, with `max_n` competitors at most.
pub(crate) fn all(max_n: usize) -> Vec<Sweep> {
    let mut sweeps = mad(max_n);
    sweeps.extend(mad_heterogeneous(max_n));
    sweeps.extend(sad(max_n));
    sweeps
}

fn mad(max_n: usize) -> Vec<Sweep> {
    let some = [max_n / 2, max_n];
    let each: Vec<usize> = (0..=max_n).collect();
    let mut delay = Sweep::new("mad-delay", "M=128K p=2 s=16 m=1", "c (delay steps)");
    let mut words = Sweep::new("mad-words", "p=1 s=1 m=1 c=0", "M (words)");
    let mut stride = Sweep::new("mad-stride", "M=4096 p=1 m=1 c=0", "s (words; 0 random)");
    let mut offset = Sweep::new("mad-offset", "M=4096 s=1 m=1 c=0", "p (words)");
    let mut burst = Sweep::new("mad-burst", "M=4096 p=16 s=1 c=100", "m (accesses)");
    let mut count = Sweep::new("mad-n", "hot spot: M=1 m=1 c=0", "N from 0 to the most");
    let mut warps = Sweep::new(
        "mad-warps",
        "M=128K, random, m=1 c=0",
        "N from 0 to the most",
    );
    for (t, op) in [(0, "read"), (1, "write")] {
        for c in [0, 2, 5, 10, 50, 200] {
            let grain = memory(t, 2, by(16), 1, c);
            delay.add(op, c as f64, homogeneous(MANY, grain, &some));
        }
        for m in [1, 16, 256, 4096, MANY] {
            let grain = memory(t, 1, by(1), 1, 0);
            words.add(op, m as f64, homogeneous(m, grain, &some));
        }
        for s in [0, 1, 4, 16, 64] {
            let how = if s == 0 { ANYWHERE } else { by(s) };
            stride.add(
                op,
                s as f64,
                homogeneous(4096, memory(t, 1, how, 1, 0), &some),
            );
        }
        for p in [0, 1, 16, 256] {
            let grain = memory(t, p, by(1), 1, 0);
            offset.add(op, p as f64, homogeneous(4096, grain, &some));
        }
        for m in [1, 4, 16] {
            let grain = memory(t, 16, by(1), m, 100);
            burst.add(op, m as f64, homogeneous(4096, grain, &some));
        }
        count.add(op, 0.0, homogeneous(1, memory(t, 0, by(0), 1, 0), &each));
        warps.add(
            op,
            0.0,
            homogeneous(MANY, memory(t, 1, ANYWHERE, 1, 0), &each),
        );
    }
    vec![delay, words, stride, offset, burst, count, warps]
}

/// (a) a test that strides beside competitors anywhere, (b) beside competitors at one word; they do what it
/// does not: write where it reads, read where it writes.
fn mad_heterogeneous(max_n: usize) -> Vec<Sweep> {
    let each: Vec<usize> = (0..=max_n).collect();
    let mut sweep = Sweep::new("mad-mixed", "M=4096, test s=1 m=1", "N from 0 to the most");
    for (t, op) in [(0, "read"), (1, "write")] {
        for (how, against) in [(ANYWHERE, "anywhere"), (by(0), "one word")] {
            let mut experiment = homogeneous(4096, memory(t, 0, by(1), 1, 0), &each);
            experiment.competitors = Some(memory(1 - t, 0, how, 1, 0));
            sweep.add(&format!("{op} vs {against}"), 0.0, experiment);
        }
    }
    vec![sweep]
}

fn sad(max_n: usize) -> Vec<Sweep> {
    let each: Vec<usize> = (0..=max_n).collect();
    let half = [max_n / 2];
    let mut latency = Sweep::new("sad-latency", "uncontended", "0 local, 1 remote, 2 far");
    let mut count = Sweep::new("sad-n", "c=0 c_s=0 m_s=0", "N from 0 to the most");
    let mut grain = Sweep::new("sad-c", "c_s=0 m_s=0", "c (delay steps)");
    let mut length = Sweep::new("sad-cs", "c=300 m_s=0", "c_s (delay steps)");
    let mut shared = Sweep::new("sad-ms", "c=300 c_s=0 f_s=0.5", "m_s (accesses)");
    let mut writes = Sweep::new("sad-fs", "c=300 c_s=0 m_s=4", "f_s");
    let mut mixed = Sweep::new(
        "sad-mixed",
        "test of one kind, competitors of the other",
        "N",
    );
    for kind in LockKind::ALL {
        let name = kind.to_string();
        let locked = |test: Grain, n: &[usize]| Experiment {
            lock: kind,
            ..homogeneous(16, test, n)
        };
        for (x, place) in [Place::Local, Place::Remote, Place::Far]
            .into_iter()
            .enumerate()
        {
            let mut experiment = locked(section(0, 0, 0.0, 0), &[]);
            experiment.place = place;
            latency.add(&name, x as f64, experiment);
        }
        count.add(&name, 0.0, locked(section(0, 0, 0.0, 0), &each));
        for c in [0, 120, 300, 1000, 3000] {
            grain.add(&name, c as f64, locked(section(0, 0, 0.0, c), &half));
        }
        for c_s in [0, 14, 30, 120] {
            length.add(&name, c_s as f64, locked(section(c_s, 0, 0.0, 300), &half));
        }
        for m_s in [0, 1, 4, 16] {
            shared.add(&name, m_s as f64, locked(section(0, m_s, 0.5, 300), &half));
        }
        for f in [0, 1, 2] {
            let f_s = f64::from(f) / 2.0;
            writes.add(&name, f_s, locked(section(0, 4, f_s, 300), &half));
        }
        let accesses = memory(0, 1, by(4), 20, 0);
        for (series, test, others) in [
            ("accesses vs locks", accesses, section(0, 0, 0.0, 0)),
            ("locks vs accesses", section(0, 0, 0.0, 0), accesses),
        ] {
            let mut experiment = locked(test, &each);
            experiment.words = 4096;
            experiment.competitors = Some(others);
            mixed.add(&format!("{kind}: {series}"), 0.0, experiment);
        }
    }
    vec![latency, count, grain, length, shared, writes, mixed]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_have_names_of_their_own_and_survive_json() {
        let sweeps = all(7);
        let points: Vec<&Point> = sweeps.iter().flat_map(|s| &s.points).collect();
        let names: std::collections::BTreeSet<&str> =
            points.iter().map(|p| p.experiment.name.as_str()).collect();
        assert_eq!(names.len(), points.len());
        for point in points {
            let text = serde_json::to_string(&point.experiment).unwrap();
            let back: Experiment = serde_json::from_str(&text).unwrap();
            assert_eq!(back.test, point.experiment.test, "{text}");
        }
    }
}
