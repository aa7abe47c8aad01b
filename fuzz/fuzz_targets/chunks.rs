//! See `dosmos_inputs`: the inputs called `chunks`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: dosmos_inputs::limit_memory(),
    |input: &[u8]| (dosmos_inputs::named("chunks").take)(input)
);
