#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (muster_fuzz::target("manifests").expect("a target").run)(data);
});
