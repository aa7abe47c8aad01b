//! See `dosmos_inputs`: the inputs called `otf2`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: dosmos_inputs::limit_memory(),
    |input: &[u8]| (dosmos_inputs::named("otf2").take)(input)
);
