//! See `dosmos_inputs`: the inputs called `calls`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: dosmos_inputs::limit_memory(),
    |input: &[u8]| (dosmos_inputs::named("calls").take)(input)
);
