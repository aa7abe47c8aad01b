//! What must hold of LoPC for any input, tried on random ones.

use crate::common::assert_close;
use dosmos_model::lopc::{
    ClientServerInput, GeneralInput, HomogeneousInput, client_server, general, homogeneous,
    variants,
};
use proptest::prelude::*;

/// Zero, or anything over many orders of magnitude.
fn time() -> impl Strategy<Value = f64> {
    prop_oneof![1 => Just(0.0), 8 => (-4.0..5.0f64).prop_map(|e| 10f64.powf(e))]
}

fn variation() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..4.0f64, 4.0..1000.0f64]
}

prop_compose! {
    fn machine()(
        processors in prop_oneof![2u32..100, 100u32..u32::MAX],
        work in time(), handler in time(), latency in time(), c2 in variation(),
        protocol_processor in any::<bool>(),
    ) -> HomogeneousInput {
        // A cycle of length zero is refused; the other tests see to that.
        let work = if work + handler + latency > 0.0 { work } else { 1.0 };
        HomogeneousInput { processors, work, handler, latency, c2, protocol_processor }
    }
}

prop_compose! {
    fn pile()(
        processors in 2u32..2000, share in 0.0..1.0f64, work in time(), handler in time(), latency in time(),
        c2 in variation(),
    ) -> ClientServerInput {
        let handler = if handler > 0.0 { handler } else { 1.0 };
        let servers = (1.0 + share * f64::from(processors - 2)).floor();
        ClientServerInput { processors, servers, work, handler, latency, c2 }
    }
}

fn excess(input: &HomogeneousInput, cycle: f64) -> f64 {
    cycle - homogeneous::cycle_rhs(input, cycle).unwrap()
}

fn cycle(input: &HomogeneousInput) -> f64 {
    homogeneous::solve(input).unwrap().cycle
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(500))]

    /// R lies between the contention-free cycle and the bound (9), and solves the equation.
    #[test]
    fn the_root_is_bracketed(input in machine()) {
        let found = homogeneous::solve(&input).unwrap();
        let bound = homogeneous::contention_bound_handlers(input.c2, input.protocol_processor).unwrap();
        let most = input.work + 2.0 * input.latency + bound * input.handler;
        let rounding = 4.0 * f64::EPSILON * most;
        prop_assert!(found.cycle >= found.logp_cycle - rounding && found.cycle <= most + rounding);
        prop_assert!(found.contention >= 0.0 && found.contention_in_handlers <= bound - 2.0 + 1e-9);
        prop_assert!(excess(&input, found.cycle).abs() <= 1e-12 * found.cycle);
    }

    /// R − F[R] rises all the way from L, below zero there: one root.
    #[test]
    fn the_root_is_unique(input in machine(), a in 0.0..1.0f64, b in 0.0..1.0f64) {
        let least = input.logp_cycle();
        prop_assert!(excess(&input, least) <= 4.0 * f64::EPSILON * least);
        let reach = 100.0 * (least + input.handler * (1.0 + input.c2));
        let (low, high) = (least + a.min(b).powi(6) * reach, least + a.max(b).powi(6) * reach);
        let rise = excess(&input, high) - excess(&input, low);
        // The slope is at least 1.
        prop_assert!(rise >= (high - low) * (1.0 - 1e-9) - 1e-9 * high, "{rise} over {}", high - low);
    }

    /// More work, longer handlers or slower messages never shorten the cycle.
    #[test]
    fn the_cycle_grows_with_its_parts(input in machine(), more in 1e-3..10.0f64) {
        let least = cycle(&input) * (1.0 - 4.0 * f64::EPSILON);
        let step = more * (input.logp_cycle());
        for slower in [
            HomogeneousInput { work: input.work + step, ..input },
            HomogeneousInput { handler: input.handler + step, ..input },
            HomogeneousInput { latency: input.latency + step, ..input },
            HomogeneousInput { c2: input.c2 + more, ..input },
        ] {
            prop_assert!(cycle(&slower) >= least, "{:?}", slower);
        }
    }

    /// Little's law at a node, and a thread is always at exactly one place: the shares sum to 1.
    #[test]
    fn littles_law(input in machine()) {
        for found in [homogeneous::solve(&input).unwrap(), variants::bard_schweitzer(&input).unwrap()] {
            let rate = found.throughput / f64::from(input.processors);
            assert_close(found.request_queue, rate * found.request, 1e-12, "Q_q");
            assert_close(found.reply_queue, rate * found.reply, 1e-12, "Q_y");
            assert_close(found.request_utilisation, rate * input.handler, 1e-12, "U_q");
            let places = [found.compute, 2.0 * input.latency, found.request, found.reply];
            let shares: f64 = places.iter().map(|time| time * rate).sum();
            assert_close(shares, 1.0, 1e-12, "shares of the cycle");
            prop_assert!(found.request_utilisation + found.reply_utilisation <= 1.0);
        }
    }

    /// Seeing less of the queue never lengthens the cycle, and in a crowd nobody sees the difference.
    #[test]
    fn the_sharper_form_is_below_and_converges(input in machine()) {
        let plain = cycle(&input);
        let sharper = variants::bard_schweitzer(&input).unwrap().cycle;
        prop_assert!(sharper <= plain * (1.0 + 1e-12), "{sharper} {plain}");
        let crowd = HomogeneousInput { processors: u32::MAX, ..input };
        assert_close(variants::bard_schweitzer(&crowd).unwrap().cycle, plain, 1e-6, "P → ∞");
    }

    /// Beside ever longer work, interrupts cost exactly one more handler; contention keeps its digits. All models
    /// agree on it.
    #[test]
    fn contention_beside_long_work(power in 9.0..15.0f64, c2 in 0.0..4.0f64, nodes in 2usize..9) {
        let work = 10f64.powf(power);
        let input = HomogeneousInput {
            processors: nodes as u32, work, handler: 1.0, latency: 1.0, c2, protocol_processor: false,
        };
        let found = homogeneous::solve(&input).unwrap();
        // The next term is of the order of So/W.
        assert_close(found.contention, 1.0, 100.0 / work, "contention");
        let beside = HomogeneousInput { protocol_processor: true, ..input };
        let rare = homogeneous::solve(&beside).unwrap().contention * work;
        // 3 g S_o²/R.
        assert_close(rare, 1.5 * (1.0 + c2), 100.0 / work, "contention beside, times W");
        let share = 1.0 / (nodes - 1) as f64;
        let row = |i| (0..nodes).map(|k| if k == i { 0.0 } else { share }).collect();
        let general = general::solve(&GeneralInput {
            visits: (0..nodes).map(row).collect(),
            work: vec![Some(work); nodes],
            handler: 1.0,
            latency: 1.0,
            c2,
            protocol_processor: true,
        })
        .unwrap();
        assert_close(general.contention[0].unwrap() * work, 1.5 * (1.0 + c2), 1e-9 + 100.0 / work, "general");
        let pile = ClientServerInput {
            processors: nodes as u32, servers: 1.0, work, handler: 1.0, latency: 1.0, c2,
        };
        let waiting = client_server::solve(&pile).unwrap().contention * work;
        let wanted = 0.5 * (1.0 + c2) * (nodes - 1) as f64;
        assert_close(waiting, wanted, 1000.0 / work, "work pile");
    }

    /// Time has no unit: all times multiplied, all times multiplied.
    #[test]
    fn units_do_not_matter(input in machine(), power in -60i32..60) {
        let unit = 2f64.powi(power);
        let scaled = HomogeneousInput {
            work: input.work * unit, handler: input.handler * unit, latency: input.latency * unit, ..input
        };
        assert_close(cycle(&scaled) / unit, cycle(&input), 1e-13, "R");
    }

    /// Little's law at a server; X below both limits; the quadratic is solved.
    #[test]
    fn work_piles(input in pile()) {
        let found = client_server::solve(&input).unwrap();
        assert_close(found.server_queue, found.throughput / input.servers * found.server, 1e-12, "Q_s");
        let kappa = (input.c2 - 1.0) / 2.0;
        let arrival = input.handler * (1.0 + found.server_queue + kappa * found.server_utilisation);
        assert_close(found.server, arrival, 1e-9, "R_s");
        let clients = f64::from(input.processors) - input.servers;
        prop_assert!(found.throughput <= input.servers / input.handler * (1.0 + 1e-12));
        prop_assert!(found.throughput <= clients / found.logp_cycle * (1.0 + 1e-12));
    }

    /// No number of servers beats the optimum.
    #[test]
    fn the_best_number_of_servers_is_the_best(input in pile()) {
        let best = client_server::optimum(&input).unwrap();
        let other = client_server::solve(&input).unwrap().throughput;
        prop_assert!(other <= best.best_throughput * (1.0 + 1e-12), "{other} {}", best.best_throughput);
        prop_assert!(best.best_throughput <= best.throughput * (1.0 + 1e-9) || best.servers < 1.0);
    }
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(100))]

    /// The general model of a homogeneous machine is the homogeneous model.
    #[test]
    fn general_reduces_to_homogeneous(input in machine(), nodes in 2usize..20) {
        let share = 1.0 / (nodes - 1) as f64;
        let row = |i| (0..nodes).map(|k| if k == i { 0.0 } else { share }).collect();
        let found = general::solve(&GeneralInput {
            visits: (0..nodes).map(row).collect(),
            work: vec![Some(input.work); nodes],
            handler: input.handler,
            latency: input.latency,
            c2: input.c2,
            protocol_processor: input.protocol_processor,
        })
        .unwrap();
        let wanted = homogeneous::solve(&input).unwrap();
        for i in 0..nodes {
            assert_close(found.cycle[i].unwrap(), wanted.cycle, 1e-9, "R");
            assert_close(found.compute[i].unwrap(), wanted.compute, 1e-9, "R_w");
            assert_close(found.request[i], wanted.request, 1e-9, "R_q");
            assert_close(found.reply_queue[i], wanted.reply_queue, 1e-9, "Q_y");
        }
    }

    /// The general model of a work pile is the client–server model.
    #[test]
    fn general_reduces_to_client_server(input in pile(), nodes in 2u32..24, share in 0.0..1.0f64) {
        let servers = 1 + (share * f64::from(nodes - 2)) as usize;
        let input = ClientServerInput { processors: nodes, servers: servers as f64, ..input };
        let nodes = nodes as usize;
        let ask = |i, k| if i >= servers && k < servers { 1.0 / servers as f64 } else { 0.0 };
        let found = general::solve(&GeneralInput {
            visits: (0..nodes).map(|i| (0..nodes).map(|k| ask(i, k)).collect()).collect(),
            work: (0..nodes).map(|i| (i >= servers).then_some(input.work)).collect(),
            handler: input.handler,
            latency: input.latency,
            c2: input.c2,
            protocol_processor: false,
        })
        .unwrap();
        let wanted = client_server::solve(&input).unwrap();
        // Near saturation both are conditioned no better than this.
        let near = 1e-9 / (1.0 - wanted.server_utilisation).min(1.0);
        assert_close(found.total_throughput, wanted.throughput, near, "X");
        assert_close(found.request[0], wanted.server, near, "R_s");
    }
}
