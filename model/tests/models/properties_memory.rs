//! What must hold of the memory hierarchy and of DSM costs for any input, tried on random ones.

use crate::common::assert_close;
use dosmos_model::dvsm::{Costs, Empty, Fault, Lock, Network, Technology};
use dosmos_model::memhier::{Locality, Machine, Mode, Named, Program, estimate, estimates};
use proptest::prelude::*;

prop_compose! {
    fn program()(alpha in 1.01..4.0f64, beta in 1.0..1e5f64, gamma in 0.01..1.0f64) -> Program {
        Program { alpha, beta, gamma }
    }
}

prop_compose! {
    fn machine()(
        config in 1..=15u32, n in 1..9u32, program in program(), cache in 10..24i32, memory in 24..36i32,
        x_max in prop_oneof![Just(None), (14.0..40.0f64).prop_map(|e| Some(e.exp2()))],
        c2 in prop_oneof![Just(0.0), 0.0..3.0f64],
    ) -> Machine {
        Machine {
            n,
            program: Named::Given(program),
            cache: 2f64.powi(cache),
            memory: 2f64.powi(memory),
            x_max,
            c2,
            ..Machine::configuration(&format!("C{config}"), "FFT").unwrap()
        }
    }
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(500))]

    /// Hits and misses are all references; the tail falls; the density is its slope.
    #[test]
    fn the_locality_law(program in program(), x in 0.0..1e9f64, more in 1e-3..1e6f64, q in 1.0..64.0f64) {
        let law = program.locality();
        assert_close(law.tail(x, q) + law.cdf(x, q), 1.0, 1e-14, "P + t");
        prop_assert!(law.tail(x + more, q) < law.tail(x, q));
        prop_assert!(law.tail(x, q + 1.0) <= law.tail(x, q));
        let step = 1e-4 * (x + law.beta / q);
        let slope = (law.cdf(x + step, q) - law.cdf(x, q)) / step;
        // Twice the step over the scale is the relative error of a one-sided difference.
        assert_close(slope, law.pdf(x + step / 2.0, q), 1e-6 + 1e-10 / (law.pdf(x, q) * step), "density");
    }

    /// The cut law is a law: from 1 at 0 to 0 at the end, below the uncut one.
    #[test]
    fn the_cut_law(program in program(), x in 0.0..1e9f64, end in 1.0..1e9f64, q in 1.0..64.0f64) {
        let law: Locality = program.locality();
        assert_close(law.cut_tail(0.0, q, end), 1.0, 1e-14, "at 0");
        prop_assert!(law.cut_tail(end / q, q, end) <= 1e-12);
        prop_assert_eq!(law.cut_tail(end, q, end), 0.0);
        let cut = law.cut_tail(x, q, end);
        prop_assert!((0.0..=1.0).contains(&cut) && cut <= law.tail(x, q) + 1e-12);
    }

    /// Queueing never helps; the closed mode answers always and lies below the open one, which has no throttle.
    #[test]
    fn the_modes_are_in_order(machine in machine()) {
        let all = estimates(&machine).unwrap();
        let (none, closed) = (all.none.instruction.unwrap(), all.closed.instruction.unwrap());
        prop_assert!(closed >= none * (1.0 - 1e-12));
        prop_assert!(all.closed.saturated.is_empty());
        prop_assert_eq!(all.open.instruction.is_none(), !all.open.saturated.is_empty());
        if let Some(open) = all.open.instruction {
            prop_assert!(open >= closed * (1.0 - 1e-12));
            prop_assert_eq!(all.raw.instruction, Some(open));
        }
        let p = [all.none.p.memory, all.none.p.disk];
        prop_assert!(p.iter().all(|p| (0.0..=1.0).contains(p)) && p[1] <= p[0]);
    }

    /// The parts of T are T, and the throttle is the one that the stalls cause.
    #[test]
    fn the_closed_mode_is_a_fixed_point(machine in machine()) {
        let found = estimate(&machine, Mode::Closed).unwrap();
        let Named::Given(program) = &machine.program else { panic!("given above") };
        let parts = found.parts.unwrap();
        let sum: f64 = parts.each().map(|(_, part)| part).sum();
        let reference = machine.cycles.cache / machine.hz + sum + found.barrier;
        assert_close(found.reference.unwrap(), reference, 1e-12, "T");
        let issue = 1.0 / (1.0 + program.gamma * machine.hz * reference);
        assert_close(found.h, issue, 1e-9, "h");
    }

    /// A larger cache or memory never costs time.
    #[test]
    fn more_memory_is_not_slower(machine in machine(), mode in prop_oneof![Just(Mode::None), Just(Mode::Closed)]) {
        let time = |machine: &Machine| estimate(machine, mode).unwrap().instruction.unwrap();
        let least = time(&machine) * (1.0 + 1e-9);
        let roomier = Machine { memory: 2.0 * machine.memory, ..machine.clone() };
        prop_assert!(time(&roomier) <= least);
        let cache = (2.0 * machine.cache).min(machine.memory);
        let quicker = Machine { cache, ..machine };
        prop_assert!(time(&quicker) <= least);
    }

    /// Totals are the sums of their parts; better technology never costs more; prefetching hides no work.
    #[test]
    fn dsm_operations(
        parts in 1..20u32, request in 0.0..1e4f64, reply in 0.0..1e4f64, extra in 0.0..1e3f64, delay in 0.0..1e4f64,
        speed in 1.0..64.0f64, benefit in 0.0..=1.0f64, protocol in 0.0..=1.0f64, atm in any::<bool>(),
    ) {
        let network = if atm { Network::atm() } else { Network::fast_ethernet() };
        let now = Costs::new(network.clone(), Technology::default()).unwrap();
        let technology = Technology { speed, system_benefit: benefit, protocol, ..Technology::default() };
        let then = Costs::new(network, technology).unwrap();
        let fault = Fault {
            parts, request, reply, extra_send: extra, extra_recv: extra, handler: 305.0, signal: 40.0,
            remote_compute: 65.0, extra_dest: extra, delay,
        };
        let cost = fault.cost(&now).unwrap();
        let sum = cost.send + cost.recv + cost.wire + cost.latency + cost.handler + cost.signal
            + cost.remote_compute + cost.soft_dest + cost.extra_dest + cost.delay;
        assert_close(cost.total, sum, 1e-12, "total");
        prop_assert!(fault.cost(&then).unwrap().total <= cost.total * (1.0 + 1e-12));
        prop_assert!(fault.service(&then) <= fault.service(&now) * (1.0 + 1e-12));
        let one = Fault { parts: 1, ..fault };
        prop_assert!(one.cost(&now).unwrap().total <= cost.total * (1.0 + 1e-12));
        prop_assert!(one.prefetched(&now) <= one.cost(&now).unwrap().total * (1.0 + 1e-12));
        let empty = Empty {
            request, reply, extra, handler: 10.0, signal: 40.0, remote_compute: 65.0, delay,
        };
        prop_assert!(empty.cost(&then).unwrap().total <= empty.cost(&now).unwrap().total * (1.0 + 1e-12));
        prop_assert!(empty.prefetched(&now) <= empty.cost(&now).unwrap().total);
        let lock = Lock {
            messages: parts + 1, request, reply, extra, compute: 130.0, signal: 40.0, remote_compute: 30.0, delay,
        };
        prop_assert!(lock.cost(&then).unwrap().total <= lock.cost(&now).unwrap().total * (1.0 + 1e-12));
        prop_assert!(lock.prefetched(&now) <= lock.cost(&now).unwrap().total);
    }
}
