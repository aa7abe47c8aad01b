//! Unit grains (docs/design/models.md#kernels-unit-grain): what one iteration of a kernel does, and who does it.

use std::hint::black_box;
use std::time::Instant;

use dsm_lib::{Object, Vector};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// An attribute: the same for every grain, or drawn anew for each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Always this.
    Constant(u64),
    /// Uniform, both ends included.
    Uniform {
        /// Least and greatest.
        uniform: [u64; 2],
    },
    /// Exponential, rounded to the nearest integer.
    Exponential {
        /// The mean.
        exponential: f64,
    },
}

impl Value {
    fn draw(self, random: &mut StdRng) -> u64 {
        match self {
            Self::Constant(n) => n,
            Self::Uniform { uniform: [a, b] } => random.random_range(a.min(b)..=a.max(b)),
            Self::Exponential { exponential } => {
                let u: f64 = random.random();
                (-(1.0 - u).ln() * exponential).round() as u64
            }
        }
    }
}

/// The distance between one access and the next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Stride {
    /// Number of elements.
    By(Value),
    /// Anywhere.
    Anywhere(Random),
}

/// The word `random`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Random {
    /// Uniform over all elements.
    Random,
}

/// `g_m`: accesses to shared elements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// 0 read, 1 write.
    pub t: u8,
    /// Elements between the starting points of consecutive processes.
    pub p: u64,
    /// Elements from one access to the next.
    pub s: Stride,
    /// Accesses a grain.
    pub m: Value,
}

/// `g_s`: a section under a lock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Critical {
    /// Delay steps in the section.
    pub c_s: Value,
    /// Accesses to the locked object in the section.
    pub m_s: Value,
    /// The fraction of them that write.
    pub f_s: f64,
}

/// A unit grain: shared accesses, then private computing, then a section; any of them may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grain {
    /// Shared accesses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub g_m: Option<Memory>,
    /// `g_c`: delay steps on private data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub g_c: Option<Value>,
    /// The section.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub g_s: Option<Critical>,
}

/// The standard delay: one step takes a microsecond of computing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    /// Rounds of the loop a step.
    rounds: u64,
}

impl Delay {
    /// Calibrates it by the fastest of some tries: anything slower was disturbed.
    pub(super) fn calibrate() -> Self {
        const ROUNDS: u64 = 100_000;
        let fastest = (0..20)
            .map(|_| {
                let start = Instant::now();
                spin(ROUNDS);
                start.elapsed().as_nanos() as u64
            })
            .min();
        let nanos = fastest.unwrap_or(ROUNDS).max(1);
        Self {
            rounds: (ROUNDS * 1000 / nanos).max(1),
        }
    }

    pub(super) fn run(self, steps: u64) {
        spin(steps.saturating_mul(self.rounds));
    }
}

fn spin(rounds: u64) {
    let mut x = 1_u64;
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// The shared data of an experiment: M elements, and an object under a lock.
pub(super) struct Shared {
    pub(super) words: Vector<u32>,
    pub(super) locked: Object<u32>,
}

/// A process that carries grains out, one after another.
pub(super) struct Worker<'a> {
    shared: &'a Shared,
    grain: Grain,
    delay: Delay,
    /// The next element; it carries on from grain to grain.
    next: u64,
    random: StdRng,
    /// Shared elements accessed so far, without those in sections.
    pub(super) words: u64,
}

impl<'a> Worker<'a> {
    pub(super) fn new(shared: &'a Shared, grain: Grain, delay: Delay, rank: u64) -> Self {
        let elements = shared.words.len() as u64;
        Self {
            next: grain.g_m.map_or(0, |g| g.p * rank % elements),
            shared,
            grain,
            delay,
            random: StdRng::seed_from_u64(rank),
            words: 0,
        }
    }

    /// One grain.
    pub(super) fn step(&mut self) -> Result<()> {
        if let Some(memory) = self.grain.g_m {
            self.access(&memory)?;
        }
        if let Some(c) = self.grain.g_c {
            let steps = c.draw(&mut self.random);
            self.delay.run(steps);
        }
        match self.grain.g_s {
            Some(critical) => self.section(&critical),
            None => Ok(()),
        }
    }

    fn access(&mut self, memory: &Memory) -> Result<()> {
        let elements = self.shared.words.len() as u64;
        for _ in 0..memory.m.draw(&mut self.random) {
            let at = self.next as usize;
            match memory.t {
                0 => drop(black_box(self.shared.words.get(at)?)),
                _ => self.shared.words.set(at, self.words as u32)?,
            }
            self.words += 1;
            self.next = match memory.s {
                Stride::By(s) => (self.next + s.draw(&mut self.random)) % elements,
                Stride::Anywhere(_) => self.random.random_range(0..elements),
            };
        }
        Ok(())
    }

    fn section(&mut self, critical: &Critical) -> Result<()> {
        let mut section = self.shared.locked.acquire()?;
        let length = self.shared.locked.len();
        for i in 0..critical.m_s.draw(&mut self.random) as usize {
            if self.random.random_bool(critical.f_s.clamp(0.0, 1.0)) {
                section.set(i % length, i as u32)?;
            } else {
                black_box(section.get(i % length)?);
            }
        }
        self.delay.run(critical.c_s.draw(&mut self.random));
        section.release()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grains_are_written_as_the_paper_writes_them() {
        let text = r#"{"g_m":{"t":1,"p":2,"s":16,"m":1},"g_c":{"uniform":[1,9]},
            "g_s":{"c_s":{"exponential":3.0},"m_s":4,"f_s":0.5}}"#;
        let grain: Grain = serde_json::from_str(text).unwrap();
        assert_eq!(grain.g_m.unwrap().s, Stride::By(Value::Constant(16)));
        assert_eq!(grain.g_c, Some(Value::Uniform { uniform: [1, 9] }));
        let random: Stride = serde_json::from_str("\"random\"").unwrap();
        assert_eq!(random, Stride::Anywhere(Random::Random));
        let back: Grain = serde_json::from_str(&serde_json::to_string(&grain).unwrap()).unwrap();
        assert_eq!(back, grain);
        assert!(serde_json::from_str::<Grain>(r#"{"g_x":1}"#).is_err());
    }

    #[test]
    fn drawn_values_have_their_mean() {
        let mut random = StdRng::seed_from_u64(1);
        let mut mean = |v: Value| {
            let sum: u64 = (0..100_000).map(|_| v.draw(&mut random)).sum();
            sum as f64 / 1e5
        };
        assert!((mean(Value::Uniform { uniform: [10, 20] }) - 15.0).abs() < 0.1);
        assert!((mean(Value::Exponential { exponential: 50.0 }) - 50.0).abs() < 1.0);
        assert!((mean(Value::Constant(7)) - 7.0).abs() < 1e-9);
    }
}
