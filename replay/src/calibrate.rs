//! Costs such that the replay of the run as it was takes as long as the run.
//!
//! What a message costs is measured on the machine, or that of a typical one; what it cost in this run depends on what
//! else went on. One number is adjusted: software that takes longer or less long (where the replay is too long) or ways
//! that take longer (where it is too short). How far the replay was off before is kept, and so is what would be gained
//! with the costs as they were: the gain lies between the two.

use dosmos_proto::Nanos;
use serde::Serialize;

use crate::change::Change;
use crate::costs::Costs;
use crate::script::Script;

/// A script with costs that fit it.
#[derive(Clone, Debug)]
pub struct Calibrated {
    script: Script,
    costs: Costs,
    fitted: Costs,
    /// Length of the replay with the costs as they were, and with those that fit.
    plain: f64,
    fit: f64,
}

/// What a change would save.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// Fraction of the length of the run; below 0 if it costs.
    pub gain: f64,
    /// The least and the most of it, over the costs that messages may have had.
    pub least: f64,
    /// See `least`.
    pub most: f64,
}

/// Replays until the costs fit.
const TRIALS: usize = 12;

/// A replay this near to the run fits.
const NEAR: f64 = 0.005;

impl Calibrated {
    /// Fits `costs` to the run; none if its replay does not come to an end (records are missing).
    pub fn new(script: Script, costs: &Costs) -> Option<Self> {
        let length = |costs: &Costs| {
            let outcome = script.replay(costs, &Change::default());
            outcome.is_whole().then_some(outcome.length.0 as f64)
        };
        let plain = length(costs)?;
        let measured = script.measured;
        let too_long = plain > measured;
        // Of software the share, of ways the time: both make the replay longer the more there is of it.
        let fitting = |x: f64| match too_long {
            true => costs.scaled(x, 0.0),
            false => costs.scaled(1.0, x),
        };
        let (mut low, mut high) = match too_long {
            true => (0.0, 1.0),
            false => (0.0, 20_000.0),
        };
        let mut fitted = *costs;
        let mut fit = plain;
        for trial in 0..TRIALS {
            if (fit / measured - 1.0).abs() < NEAR {
                break;
            }
            let middle = (low + high) / 2.0;
            fitted = fitting(middle);
            fit = length(&fitted)?;
            match fit > measured {
                true => high = middle,
                // Ways that are too short at the first trial may have to be much longer.
                false if trial == 0 && !too_long => (low, high) = (middle, 40.0 * high),
                false => low = middle,
            }
        }
        Some(Self {
            script,
            costs: *costs,
            fitted,
            plain,
            fit,
        })
    }

    /// What is replayed.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// The costs that fit.
    pub fn costs(&self) -> &Costs {
        &self.fitted
    }

    /// Replay over run, less one: with the costs as they were, and with those that fit.
    pub fn errors(&self) -> (f64, f64) {
        let measured = self.script.measured;
        (self.plain / measured - 1.0, self.fit / measured - 1.0)
    }

    /// What `change` would save; none if the changed run does not come to an end.
    pub fn gain(&self, change: &Change) -> Option<Gain> {
        let length = |costs: &Costs| {
            let outcome = self.script.replay(costs, change);
            outcome.is_whole().then_some(outcome.length.0 as f64)
        };
        let gain = 1.0 - length(&self.fitted)? / self.fit;
        let other = 1.0 - length(&self.costs)? / self.plain;
        Some(Gain {
            gain,
            least: gain.min(other),
            most: gain.max(other),
        })
    }

    /// The expected length of the run after `change`, where messages cost what `there` says instead of what `here` says.
    pub fn expected(&self, change: &Change, here: &Costs, there: &Costs) -> Option<Nanos> {
        let software = there.end_ns / here.end_ns;
        let fitted = Costs {
            end_ns: self.fitted.end_ns * software,
            end_ns_per_byte: self.fitted.end_ns_per_byte + there.end_ns_per_byte
                - here.end_ns_per_byte,
            serve_ns: self.fitted.serve_ns,
            near_ns: (self.fitted.near_ns + there.near_ns - here.near_ns).max(0.0),
            far_ns: (self.fitted.far_ns + there.far_ns - here.far_ns).max(0.0),
            processors: self.fitted.processors,
        };
        let outcome = self.script.replay(&fitted, change);
        let length = outcome.length.0 as f64 * self.script.measured / self.fit;
        outcome.is_whole().then_some(Nanos(length as u64))
    }
}
