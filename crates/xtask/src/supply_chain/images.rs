//! Checks of the container image that need no build.

use std::fs;
use std::process::Command;

use muster_testkit::testbed;

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Whether a build continues with these base images.
fn goes_on(release: &str, images: &[&str]) -> bool {
    let script = testbed::workspace().join("image/check-bases.sh");
    let output = Command::new("sh").arg(script).args(images).env("RELEASE", release).output();
    output.expect("sh").status.success()
}

#[test]
fn release_is_refused_unless_every_base_image_is_pinned_by_digest() {
    let pinned = format!("docker.io/library/rust:1.95@{DIGEST}");
    assert!(goes_on("1", &[&pinned, &pinned]));
    for floating in
        ["rust:1", "rust", "rust@sha256:", "rust@sha256:abc", "", "rust:1@sha256:${DIGEST}"]
    {
        assert!(!goes_on("1", &[&pinned, floating]), "{floating}");
        assert!(!goes_on("yes", &[floating, &pinned]), "{floating}");
        assert!(goes_on("", &[floating]) && goes_on("0", &[floating]), "{floating}");
    }
    assert!(!goes_on("1", &[]));
}

#[test]
fn dockerfile_names_base_images_only_in_arguments_and_checks_them_first() {
    let text = fs::read_to_string(testbed::workspace().join("Dockerfile")).expect("a Dockerfile");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let from: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("FROM ")).collect();
    assert_eq!(from, ["${BUILD_IMAGE} AS build", "${RUNTIME_IMAGE}"]);
    let first_run = lines.iter().find(|line| line.starts_with("RUN ")).expect("a step");
    assert_eq!(
        *first_run,
        r#"RUN RELEASE="${RELEASE}" sh image/check-bases.sh "${BUILD_IMAGE}" "${RUNTIME_IMAGE}""#
    );
    // Such a line would load the builder itself by a tag.
    assert!(!text.contains("# syntax="));
    assert!(lines.contains(&"USER 65532:65532"));
}
