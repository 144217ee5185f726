//! Muster's own manifests: any text gives findings with positions in it, or manifests.

use muster_api::{read_alone, read_texts};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "manifests",
    run,
    words: &[
        "kind: Gang",
        "kind: Queue",
        "kind: Pool",
        "kind: Node",
        "kind: Topology",
        "metadata: ",
        "name: ",
        "spec:",
        "roles:",
        "- ",
        "min: ",
        "max: ",
        "count: ",
        "---\n",
        "...\n",
        "&a ",
        "*a",
        "<<: ",
        "!!str ",
        "!x ",
        "|\n",
        ">-\n",
        "{",
        "}",
        "[",
        "]",
        "~",
        "null",
        "true",
        ".nan",
        ".inf",
        "-1",
        "0",
        "1e400",
        "99999999999999999999",
        "18446744073709551615",
        "0x10",
        "1500m",
        "1Ei",
        "9E",
        "0.5",
        "1h30m",
        "2026-12-01T08:00:00Z",
        "-009999-01-01T00:00:00Z",
        "\u{feff}",
        "\u{85}",
        "\r\n",
        "\t",
        "\"",
        "'",
        "# ",
        ": ",
        "priority: ",
        "preemptible: ",
        "queue: ",
        "user: ",
        "deadline: ",
        "costOfWaiting: ",
        "guaranteed: ",
        "limit: ",
        "nvidia.com/gpu: ",
        "cpu: ",
        "memory: ",
        "template: ",
        "run: ",
        "command: ",
        "env: ",
    ],
    rounds: 2_000,
};

fn run(data: &[u8]) {
    let read = read_texts(&[("a.yaml", data)]);
    assert_eq!(read, read_texts(&[("a.yaml", data)]), "the same text is read in two ways");
    let findings = match read {
        Ok(manifests) => manifests.warnings,
        Err(findings) => {
            assert!(!findings.is_empty(), "refused without a finding");
            findings
        }
    };
    // YAML's lines also end with a carriage return alone.
    let lines = 1 + data.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
    for finding in findings {
        assert!(finding.line >= 1 && finding.line <= lines + 1, "{finding}");
        assert!(!finding.reason.is_empty() && !finding.field.is_empty(), "{finding}");
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = read_alone("a.yaml", text);
    }
}
