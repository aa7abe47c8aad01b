//! The simulation proper: three kinds of event, a handful of rules.

use std::collections::VecDeque;

use super::calendar::Calendar;
use super::distribution::{Distribution, Sampler};
use super::input::SimInput;
use super::latency::Network;
use super::measure::{Measures, SimOutput};
use super::random::{Random, Weighted};
use crate::error::{ModelError, invalid};

/// Runs the warm-up and the measured cycles.
///
/// # Errors
/// As [`SimInput::validate`]; also [`ModelError::Invalid`] under `V` or `W` if simulated time does
/// not advance (all delays of a cycle zero by chance of the distribution).
pub fn simulate(input: &SimInput) -> Result<SimOutput, ModelError> {
    input.validate()?;
    let mut engine = Engine::new(input)?;
    for thread in 0..input.means.len() {
        if input.means[thread].is_some() {
            engine.start_cycle(thread);
        }
    }
    if input.warmup > 0 {
        engine.run();
    }
    engine.measures.restart(engine.now, input.cycles);
    engine.run();
    let output = engine.measures.output(engine.now, engine.events);
    if output.elapsed > 0.0 {
        Ok(output)
    } else {
        Err(invalid(
            "W",
            output.elapsed,
            "such that simulated time advances",
        ))
    }
}

/// What a thread is doing, and so what its pending event means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is no thread on this node.
    Absent,
    /// Has work left but does not run.
    Ready,
    /// Computes; its event is the end of the work.
    Computing,
    /// Its message is under way; its event is the arrival at `at`.
    Travelling,
    /// Its message waits at `at`.
    Waiting,
    /// Its message is handled at `at`; its event is the end of the handler.
    Handled,
}

struct Thread {
    phase: Phase,
    /// Whether its message is the reply.
    reply: bool,
    at: usize,
    hops_left: u32,
    /// Arrival of its message at `at`.
    arrived: f64,
    /// Start of the handler of its message.
    started: f64,
    cycle_start: f64,
    /// Work left, while `Ready`.
    remaining: f64,
    /// Where requests go; `None` if they need no hop.
    targets: Option<Weighted>,
    mean_hops: f64,
    work: Sampler,
}

#[derive(Default)]
struct Node {
    /// Thread whose message is being handled.
    serving: Option<usize>,
    /// Threads whose messages wait, in order of arrival.
    queue: VecDeque<usize>,
}

struct Engine {
    now: f64,
    events: u64,
    interrupts: bool,
    handler: Sampler,
    network: Network,
    random: Random,
    calendar: Calendar,
    threads: Vec<Thread>,
    nodes: Vec<Node>,
    measures: Measures,
}

impl Engine {
    fn new(input: &SimInput) -> Result<Self, ModelError> {
        let n = input.visits.len();
        let threads = input
            .visits
            .iter()
            .zip(&input.means)
            .map(|(visits, mean)| Thread {
                phase: if mean.is_some() {
                    Phase::Ready
                } else {
                    Phase::Absent
                },
                reply: false,
                at: 0,
                hops_left: 0,
                arrived: 0.0,
                started: 0.0,
                cycle_start: 0.0,
                remaining: 0.0,
                targets: Weighted::new(visits),
                mean_hops: visits.iter().sum(),
                work: input.work.sampler(mean.unwrap_or(0.0)),
            })
            .collect();
        Ok(Self {
            now: 0.0,
            events: 0,
            interrupts: !input.protocol_processor,
            handler: Distribution::C2(input.c2).sampler(input.handler),
            network: Network::new(input.network, n, input.latency)?,
            random: Random::new(input.seed),
            calendar: Calendar::new(n),
            threads,
            nodes: (0..n).map(|_| Node::default()).collect(),
            measures: Measures::new(n, input.warmup),
        })
    }

    /// Processes events until the window is complete.
    fn run(&mut self) {
        while !self.measures.complete() {
            // Some thread always has an event: a waiting message implies one in service.
            let Some((time, thread)) = self.calendar.next() else {
                return;
            };
            self.now = time;
            self.events += 1;
            match self.threads[thread].phase {
                Phase::Computing => self.work_done(thread),
                Phase::Travelling => self.arrival(thread),
                Phase::Handled => self.handler_done(thread),
                Phase::Absent | Phase::Ready | Phase::Waiting => {
                    self.calendar.cancel(thread);
                }
            }
        }
    }

    /// Draws new work; the thread runs as soon as no handler does.
    fn start_cycle(&mut self, thread: usize) {
        let work = self.threads[thread].work.draw(&mut self.random);
        let state = &mut self.threads[thread];
        state.cycle_start = self.now;
        state.remaining = work;
        state.phase = Phase::Ready;
        if !self.interrupts || self.nodes[thread].serving.is_none() {
            self.resume(thread);
        } else {
            self.calendar.cancel(thread);
        }
    }

    /// Lets a ready thread compute.
    fn resume(&mut self, thread: usize) {
        let state = &mut self.threads[thread];
        state.phase = Phase::Computing;
        self.calendar.schedule(thread, self.now + state.remaining);
    }

    fn work_done(&mut self, thread: usize) {
        let state = &mut self.threads[thread];
        self.measures.compute.add(self.now - state.cycle_start);
        let whole = state.mean_hops.floor();
        let extra = self.random.uniform() < state.mean_hops - whole;
        state.hops_left = whole as u32 + u32::from(extra);
        state.reply = false;
        self.send(thread, thread);
    }

    /// Sends the thread's message from `from` to its next hop, or back home as the reply.
    fn send(&mut self, thread: usize, from: usize) {
        let state = &mut self.threads[thread];
        let to = match &state.targets {
            Some(targets) if state.hops_left > 0 => {
                state.hops_left -= 1;
                targets.draw(&mut self.random)
            }
            _ => {
                state.reply = true;
                thread
            }
        };
        state.at = to;
        state.phase = Phase::Travelling;
        let latency = self.network.latency(from, to, &mut self.random);
        self.calendar.schedule(thread, self.now + latency);
    }

    fn arrival(&mut self, thread: usize) {
        let state = &mut self.threads[thread];
        let (at, reply) = (state.at, state.reply);
        state.arrived = self.now;
        self.measures.arrival(at, reply, self.now);
        if self.nodes[at].serving.is_some() {
            state.phase = Phase::Waiting;
            self.nodes[at].queue.push_back(thread);
            self.calendar.cancel(thread);
            return;
        }
        if self.interrupts && self.threads[at].phase == Phase::Computing {
            let end = self.calendar.cancel(at);
            self.threads[at].remaining = end - self.now;
            self.threads[at].phase = Phase::Ready;
        }
        self.serve(at, thread);
    }

    fn serve(&mut self, node: usize, thread: usize) {
        self.nodes[node].serving = Some(thread);
        let time = self.handler.draw(&mut self.random);
        let state = &mut self.threads[thread];
        state.phase = Phase::Handled;
        state.started = self.now;
        self.calendar.schedule(thread, self.now + time);
    }

    fn handler_done(&mut self, thread: usize) {
        let state = &self.threads[thread];
        let (node, reply) = (state.at, state.reply);
        let response = self.now - state.arrived;
        self.measures
            .departure(node, reply, state.started, self.now);
        if reply {
            self.measures.reply.add(response);
            self.measures.cycle(thread, self.now - state.cycle_start);
            // The node still counts as serving, so that the thread waits for the queue to empty.
            self.start_cycle(thread);
        } else {
            self.measures.request.add(response);
            self.send(thread, node);
        }
        match self.nodes[node].queue.pop_front() {
            Some(next) => self.serve(node, next),
            None => {
                self.nodes[node].serving = None;
                if self.interrupts && self.threads[node].phase == Phase::Ready {
                    self.resume(node);
                }
            }
        }
    }
}
