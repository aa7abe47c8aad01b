//! See `dosmos_inputs`: the inputs called `cluster_files`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: dosmos_inputs::limit_memory(),
    |input: &[u8]| (dosmos_inputs::named("cluster_files").take)(input)
);
