//! What to buy: the fastest cluster for a budget, the best upgrade for a budget increase.
//!
//! By enumeration of everything on offer, so that the answer is the optimum and not a local one.
//! A cluster of N machines costs N (C_machine(n) + C_net), where a machine is processors with caches,
//! and memory; one machine alone needs no network.

use serde::{Deserialize, Serialize};

use super::machine::{Cycles, Machine, Named, Network, Program};
use super::time::{Estimate, Level, Mode, estimate};
use crate::error::{ModelError, invalid, non_negative, positive};

/// Prices, and what is to be spent on what. All prices in one currency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChoiceInput {
    /// B, the budget; with `existing`, B′, the budget increase.
    pub budget: f64,
    /// The program.
    pub program: Named<Program>,
    /// Machines on offer, without cache and memory.
    pub machines: Vec<MachineOffer>,
    /// Cache sizes on offer; a price is for one processor.
    pub caches: Vec<SizeOffer>,
    /// Memory sizes on offer; a price is for one machine.
    pub memories: Vec<SizeOffer>,
    /// Networks on offer; none means that one machine must do.
    #[serde(default)]
    pub networks: Vec<NetworkOffer>,
    /// What there is already, to be upgraded.
    #[serde(default)]
    pub existing: Option<Configuration>,
    /// Machines at most.
    #[serde(default = "default_most")]
    pub max_machines: u32,
    /// Assumption on queueing.
    #[serde(default)]
    pub mode: Mode,
    /// How many of the best to list.
    #[serde(default = "default_top")]
    pub top: usize,
    /// As in [`Machine`].
    #[serde(default = "default_adjust")]
    pub adjust: f64,
    /// As in [`Machine`].
    #[serde(default)]
    pub x_max: Option<f64>,
    /// As in [`Machine`].
    #[serde(default = "default_hz")]
    pub hz: f64,
    /// As in [`Machine`].
    #[serde(default)]
    pub cycles: Cycles,
}

fn default_most() -> u32 {
    64
}

fn default_top() -> usize {
    5
}

fn default_adjust() -> f64 {
    1.124
}

fn default_hz() -> f64 {
    2e8
}

/// A machine with `n` processors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineOffer {
    /// Its processors.
    pub n: u32,
    /// Its price.
    pub price: f64,
}

/// A cache or memory of a size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeOffer {
    /// Its size.
    pub bytes: f64,
    /// Its price.
    pub price: f64,
}

/// A network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkOffer {
    /// Which.
    pub net: Named<Network>,
    /// Its price for each machine it connects.
    pub price: f64,
}

/// A cluster of like machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// Processors of a machine.
    pub n: u32,
    /// Machines.
    #[serde(rename = "N")]
    pub machines: u32,
    /// Bytes of a processor's cache.
    pub cache: f64,
    /// Bytes of a machine's memory.
    pub memory: f64,
    /// The network, where there are several machines.
    #[serde(default)]
    pub net: Option<Named<Network>>,
}

/// A configuration and what the model says of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// What it is.
    #[serde(flatten)]
    pub configuration: Configuration,
    /// What is to be paid; for an upgrade, beyond what there is.
    pub cost: f64,
    /// E(Instr), seconds.
    #[serde(rename = "E")]
    pub instruction: f64,
    /// Levels whose utilisation is at least 1 (in the modes that answer all the same).
    pub saturated: Vec<Level>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChoiceOutput {
    /// The fastest that the budget pays for; the cheaper of equals.
    pub best: Candidate,
    /// The best ones, that one included, fastest first.
    pub ranking: Vec<Candidate>,
    /// Configurations on offer within `max_machines`.
    pub considered: usize,
    /// Those that the budget pays for.
    pub affordable: usize,
    /// Affordable ones that were passed over because the model has no answer: saturated in the open
    /// mode.
    pub without_answer: usize,
    /// E(Instr) of what there is; only for an upgrade, and if the mode answers.
    #[serde(rename = "E_existing", skip_serializing_if = "Option::is_none")]
    pub existing: Option<f64>,
    /// That over the best E(Instr).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup: Option<f64>,
}

/// More combinations than this are refused: they would take minutes.
const MAX_CONSIDERED: usize = 2_000_000;

/// Minimises E(Instr) subject to the budget, by enumeration (5), (6).
///
/// An upgrade keeps the machines there are and pays the full price of every part that is exchanged
/// (nothing is sold) and of every machine that is added; parts that are kept need not be on offer as
/// long as no machine is added. Changing the number of processors of a machine exchanges the machine,
/// its memory stays.
///
/// # Errors
/// [`ModelError::Invalid`], [`ModelError::Shape`] or [`ModelError::Unknown`] naming the field;
/// [`ModelError::NothingFits`] if the budget pays for nothing, or the model has no answer for what it
/// pays for.
pub fn choose(input: &ChoiceInput) -> Result<ChoiceOutput, ModelError> {
    let shop = Shop::new(input)?;
    let mut tally = Tally::default();
    for configuration in shop.configurations() {
        tally.considered += 1;
        let Some(cost) = shop.cost(&configuration) else {
            continue;
        };
        tally.cheapest = tally.cheapest.min(cost);
        if cost > input.budget {
            continue;
        }
        tally.affordable += 1;
        let answer = shop.estimate(&configuration)?;
        match answer.instruction {
            None => tally.without_answer += 1,
            Some(instruction) => {
                let candidate = Candidate {
                    configuration,
                    cost,
                    instruction,
                    saturated: answer.saturated,
                };
                tally.keep(candidate, input.top);
            }
        }
    }
    let before = match &input.existing {
        Some(existing) => shop.estimate(existing)?.instruction,
        None => None,
    };
    tally.answer(input, before)
}

/// What the enumeration has found.
struct Tally {
    candidates: Vec<Candidate>,
    considered: usize,
    affordable: usize,
    without_answer: usize,
    cheapest: f64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            candidates: Vec::new(),
            considered: 0,
            affordable: 0,
            without_answer: 0,
            cheapest: f64::INFINITY,
        }
    }
}

impl Tally {
    /// Keeps a candidate if it may be among the best; memory stays in proportion to `top`.
    fn keep(&mut self, candidate: Candidate, top: usize) {
        self.candidates.push(candidate);
        if self.candidates.len() > top.saturating_mul(2).max(1000) {
            self.rank(top);
        }
    }

    /// Fastest first, the cheaper of equals, `top` of them.
    fn rank(&mut self, top: usize) {
        self.candidates.sort_by(|a, b| {
            let by_time = a.instruction.total_cmp(&b.instruction);
            by_time.then(a.cost.total_cmp(&b.cost))
        });
        self.candidates.truncate(top.max(1));
    }

    fn answer(
        mut self,
        input: &ChoiceInput,
        before: Option<f64>,
    ) -> Result<ChoiceOutput, ModelError> {
        self.rank(input.top);
        let Some(best) = self.candidates.first().cloned() else {
            let reason = if self.affordable == 0 {
                format!("the cheapest on offer costs {}", self.cheapest)
            } else {
                format!(
                    "all {} that it pays for are saturated, and the mode \"open\" has no answer then; \
                     use \"closed\"",
                    self.affordable
                )
            };
            return Err(ModelError::NothingFits {
                budget: input.budget,
                reason,
            });
        };
        Ok(ChoiceOutput {
            speedup: before.map(|before| before / best.instruction),
            existing: before,
            best,
            ranking: self.candidates,
            considered: self.considered,
            affordable: self.affordable,
            without_answer: self.without_answer,
        })
    }
}

/// What is on offer, what exists among it; prices `None` for parts that exist but cannot be bought.
struct Shop<'a> {
    input: &'a ChoiceInput,
    processors: Vec<(u32, Option<f64>)>,
    caches: Vec<(f64, Option<f64>)>,
    memories: Vec<(f64, Option<f64>)>,
    networks: Vec<(Named<Network>, Option<f64>)>,
}

impl<'a> Shop<'a> {
    fn new(input: &'a ChoiceInput) -> Result<Self, ModelError> {
        validate(input)?;
        let mut shop = Self {
            input,
            processors: input
                .machines
                .iter()
                .map(|m| (m.n, Some(m.price)))
                .collect(),
            caches: priced(&input.caches),
            memories: priced(&input.memories),
            networks: input
                .networks
                .iter()
                .map(|o| (o.net.clone(), Some(o.price)))
                .collect(),
        };
        if let Some(existing) = &input.existing {
            keep(&mut shop.processors, existing.n);
            keep(&mut shop.caches, existing.cache);
            keep(&mut shop.memories, existing.memory);
            if let Some(net) = &existing.net {
                keep(&mut shop.networks, net.clone());
            }
            shop.estimate(existing)?;
        }
        let machines = shop.processors.len() * shop.caches.len() * shop.memories.len();
        let clusters = 1 + shop
            .networks
            .len()
            .saturating_mul(input.max_machines as usize);
        if machines.saturating_mul(clusters) > MAX_CONSIDERED {
            let found = f64::from(input.max_machines);
            return Err(invalid(
                "max_machines",
                found,
                "less: over 2,000,000 combinations",
            ));
        }
        Ok(shop)
    }

    /// Every combination; an upgrade never has fewer machines.
    fn configurations(&self) -> impl Iterator<Item = Configuration> + '_ {
        let least = self.input.existing.as_ref().map_or(1, |e| e.machines);
        let alone = (least == 1).then_some((1, None));
        let connected = self.networks.iter().flat_map(move |(net, _)| {
            (least.max(2)..=self.input.max_machines).map(move |count| (count, Some(net)))
        });
        alone
            .into_iter()
            .chain(connected)
            .flat_map(move |(machines, net)| {
                self.processors.iter().flat_map(move |&(n, _)| {
                    self.caches.iter().flat_map(move |&(cache, _)| {
                        self.memories.iter().map(move |&(memory, _)| Configuration {
                            n,
                            machines,
                            cache,
                            memory,
                            net: net.cloned(),
                        })
                    })
                })
            })
    }

    /// What is to be paid; `None` if a part that is needed cannot be bought.
    fn cost(&self, wanted: &Configuration) -> Option<f64> {
        let kept = self.input.existing.as_ref();
        let old = kept.map_or(0, |e| e.machines).min(wanted.machines);
        let new = f64::from(wanted.machines - old);
        let old = f64::from(old);
        // Machines that need the part: new ones, and old ones that have another.
        let buyers = |same: bool| if same { new } else { new + old };
        let pay = |buyers: f64, price: Option<f64>| {
            if buyers > 0.0 {
                price.map(|p| buyers * p)
            } else {
                Some(0.0)
            }
        };
        let mut cost = pay(
            buyers(kept.is_some_and(|e| e.n == wanted.n)),
            price_of(&self.processors, &wanted.n),
        )?;
        let same_caches = kept.is_some_and(|e| e.cache == wanted.cache && e.n == wanted.n);
        cost +=
            f64::from(wanted.n) * pay(buyers(same_caches), price_of(&self.caches, &wanted.cache))?;
        cost += pay(
            buyers(kept.is_some_and(|e| e.memory == wanted.memory)),
            price_of(&self.memories, &wanted.memory),
        )?;
        if let Some(net) = &wanted.net {
            let same = kept.is_some_and(|e| e.net.as_ref() == Some(net));
            cost += pay(buyers(same), price_of(&self.networks, net))?;
        }
        Some(cost)
    }

    fn estimate(&self, wanted: &Configuration) -> Result<Estimate, ModelError> {
        let input = self.input;
        let machine = Machine {
            n: wanted.n,
            machines: wanted.machines,
            cache: wanted.cache,
            memory: wanted.memory,
            net: wanted.net.clone(),
            program: input.program.clone(),
            adjust: input.adjust,
            unit_bytes: 1.0,
            remote_disk: 0.0,
            x_max: input.x_max,
            c2: 0.0,
            hz: input.hz,
            cycles: input.cycles,
        };
        estimate(&machine, input.mode)
    }
}

fn priced(offers: &[SizeOffer]) -> Vec<(f64, Option<f64>)> {
    offers.iter().map(|o| (o.bytes, Some(o.price))).collect()
}

/// Adds what exists to what is on offer.
fn keep<T: PartialEq>(offers: &mut Vec<(T, Option<f64>)>, part: T) {
    if offers.iter().all(|(offered, _)| *offered != part) {
        offers.push((part, None));
    }
}

fn price_of<T: PartialEq>(offers: &[(T, Option<f64>)], part: &T) -> Option<f64> {
    offers.iter().find(|(offered, _)| offered == part)?.1
}

fn validate(input: &ChoiceInput) -> Result<(), ModelError> {
    non_negative("budget", input.budget)?;
    if input.max_machines == 0 {
        return Err(invalid("max_machines", 0.0, "at least 1"));
    }
    for (field, found) in [
        ("machines", input.machines.len()),
        ("caches", input.caches.len()),
        ("memories", input.memories.len()),
    ] {
        if found == 0 {
            let field = field.to_owned();
            return Err(ModelError::Shape {
                field,
                found,
                expected: 1,
            });
        }
    }
    for (i, offer) in input.machines.iter().enumerate() {
        if offer.n == 0 {
            return Err(invalid(format!("machines[{i}].n"), 0.0, "at least 1"));
        }
        non_negative(&format!("machines[{i}].price"), offer.price)?;
    }
    for (field, offers) in [("caches", &input.caches), ("memories", &input.memories)] {
        for (i, offer) in offers.iter().enumerate() {
            positive(&format!("{field}[{i}].bytes"), offer.bytes)?;
            non_negative(&format!("{field}[{i}].price"), offer.price)?;
        }
    }
    for (i, offer) in input.networks.iter().enumerate() {
        offer.net.resolve(&format!("networks[{i}].net"))?;
        non_negative(&format!("networks[{i}].price"), offer.price)?;
    }
    input.program.resolve().map(|_| ())
}
