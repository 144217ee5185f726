
#[test]
fn tmp_runner() {
    let text = std::fs::read_to_string("/tmp/helper-cases.txt").unwrap_or_default();
    for case in text.split("===") {
        let out = std::panic::catch_unwind(|| crate::dsl::check(case));
        println!("-----------{}\n>>>\n{}", case.trim_end(), out.unwrap_or_else(|_| "PANIC".into()));
    }
}
