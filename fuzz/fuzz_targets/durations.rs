#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (muster_fuzz::target("durations").expect("a target").run)(data);
});
