//! See `dosmos_inputs`: the inputs called `logs`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: dosmos_inputs::limit_memory(),
    |input: &[u8]| (dosmos_inputs::named("logs").take)(input)
);
