//! Every evaluated LoPC case, within the tolerance it states.

use crate::common::{assert_close, assert_matches, number, read, section, tolerance};
use dosmos_model::ModelError;
use dosmos_model::lopc::{
    ClientServerInput, GeneralInput, HomogeneousInput, SpmvInput, client_server, general,
    general_variants, homogeneous, spmv, variants,
};

#[test]
fn homogeneous_cases() {
    let (exact, recursion) = (
        tolerance("closed_form_and_solved"),
        tolerance("mva_recursions"),
    );
    for case in section(&["lopc", "homogeneous"]) {
        let input: HomogeneousInput = read(&case["in"]);
        let what = case["in"].to_string();
        let solved = homogeneous::solve(&input).unwrap();
        assert_matches(&solved, &case["out"], exact, &what);
        let sharper = variants::bard_schweitzer(&input).unwrap();
        assert_close(
            sharper.cycle,
            number(&case["bard_schweitzer_R"]),
            exact,
            &what,
        );
        let mva = variants::mva(&input).unwrap();
        assert_close(mva.cycle, number(&case["mva_R"]), recursion, &what);
    }
}

#[test]
fn right_hand_side_cases() {
    for case in section(&["lopc", "rhs"]) {
        let mut fields = case["in"].clone();
        let cycle = number(&fields["R"]);
        let fields_map = fields.as_object_mut().unwrap();
        fields_map.remove("R");
        fields_map.insert("P".to_owned(), 2.into());
        let rhs = homogeneous::cycle_rhs(&read(&fields), cycle).unwrap();
        assert_close(
            rhs,
            number(&case["F"]),
            tolerance("closed_form_and_solved"),
            "F",
        );
    }
}

#[test]
fn contention_bound_cases() {
    for case in section(&["lopc", "contention_bound_handlers"]) {
        let c2 = number(&case["C2"]);
        for (variant, protocol_processor) in [("interrupt", false), ("protocol_processor", true)] {
            let bound = homogeneous::contention_bound_handlers(c2, protocol_processor).unwrap();
            let exact = tolerance("closed_form_and_solved");
            assert_close(bound, number(&case[variant]), exact, variant);
        }
    }
}

#[test]
fn client_server_cases() {
    let mut recursions = 0;
    for case in section(&["lopc", "client_server"]) {
        let input: ClientServerInput = read(&case["in"]);
        let what = case["in"].to_string();
        let solved = client_server::solve(&input).unwrap();
        assert_matches(
            &solved,
            &case["out"],
            tolerance("closed_form_and_solved"),
            &what,
        );
        let recursion = client_server::mva(&input);
        if case["mva_X"].is_null() {
            let error = recursion.unwrap_err();
            assert!(
                matches!(&error, ModelError::Invalid { field, .. } if field == "Ps"),
                "{error}"
            );
        } else {
            let wanted = number(&case["mva_X"]);
            assert_close(
                recursion.unwrap().throughput,
                wanted,
                tolerance("mva_recursions"),
                &what,
            );
            recursions += 1;
        }
    }
    assert!(recursions > 0);
}

#[test]
fn client_server_optimum_cases() {
    for case in section(&["lopc", "client_server_opt"]) {
        let optimum = client_server::optimum(&read(&case["in"])).unwrap();
        let exact = tolerance("closed_form_and_solved");
        assert_matches(&optimum, &case["out"], exact, &case["in"].to_string());
    }
}

#[test]
fn general_cases() {
    let exact = tolerance("general");
    for case in section(&["lopc", "general"]) {
        let label = case["label"].as_str().unwrap();
        let input: GeneralInput = read(&case["in"]);
        let solved = general::solve(&input).unwrap();
        assert_matches(&solved, &case["out"], exact, label);
        let (sharper, _) = general_variants::bard_schweitzer(&input).unwrap();
        assert_matches(&sharper.cycle, &case["bard_schweitzer_R"], exact, label);
        check_general_mva(&input, &case["mva_R"], label);
    }
}

/// Where the recursion has no meaningful value, the case lists none or a negative cycle: both must
/// be refused, the second with the very value.
fn check_general_mva(input: &GeneralInput, wanted: &serde_json::Value, label: &str) {
    let recursion = general_variants::mva(input);
    let exact = tolerance("mva_recursions");
    let Some(cycles) = wanted.as_array() else {
        let error = recursion.unwrap_err();
        assert!(matches!(&error, ModelError::Invalid { field, .. } if field == "V[0][0]"));
        return;
    };
    match cycles
        .iter()
        .position(|r| r.as_f64().is_some_and(|r| r <= 0.0))
    {
        None => assert_matches(&recursion.unwrap().cycle, wanted, exact, label),
        Some(i) => match recursion.unwrap_err() {
            ModelError::Unphysical { field, value } => {
                assert_eq!(field, format!("R[{i}]"));
                assert_close(value, number(&cycles[i]), exact, label);
            }
            other => panic!("{label}: {other}"),
        },
    }
}

#[test]
fn sparse_matrix_cases() {
    for case in section(&["lopc", "alewife"]) {
        let processors = case["P"].as_u64().unwrap();
        let solved = spmv::solve(&SpmvInput::alewife(u32::try_from(processors).unwrap())).unwrap();
        let exact = tolerance("closed_form_and_solved");
        assert_matches(&solved, &case, exact, &format!("P = {processors}"));
    }
}
