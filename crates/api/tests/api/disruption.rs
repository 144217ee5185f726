//! Disruption and scaling of gangs: values, errors and warnings.

use muster_core::gang::{Disruption, GangSpec, Signal};
use muster_core::progress::Scaling;
use muster_core::time::Span;

use crate::gang_mistakes::check_gang;
use crate::good;

/// A gang with this role and these further fields of its spec, on line 5.
fn text(role: &str, fields: &str) -> String {
    format!("kind: Gang\nmetadata: {{name: g}}\nspec:\n  roles: [{{name: r, {role}}}]\n{fields}\n")
}

fn gang(fields: &str) -> GangSpec {
    good(&text("min: 1, max: 4", fields)).gangs.remove(0).spec
}

fn warnings(role: &str, fields: &str) -> Vec<String> {
    good(&text(role, fields)).warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn gang_is_preemptible_by_default() {
    for (fields, preemptible) in [
        ("", true),
        ("  disruption: {}", true),
        ("  disruption:", true),
        ("  disruption: {grace: 2m}", true),
        ("  disruption: {preemptible: true}", true),
        ("  disruption: {preemptible: false}", false),
    ] {
        assert_eq!(gang(fields).disruption.preemptible, preemptible, "{fields}");
    }
    // Gangs from other sources than manifests set it themselves.
    assert!(!Disruption::default().preemptible);
}

#[test]
fn gang_preempts_lower_priorities_by_default() {
    for (fields, never_preempts) in [
        ("", false),
        ("  disruption: {preempts: true}", false),
        ("  disruption: {preempts: false}", true),
        ("  disruption: {preemptible: false}", false),
    ] {
        assert_eq!(gang(fields).disruption.never_preempts, never_preempts, "{fields}");
    }
}

#[test]
fn every_catchable_signal_has_its_name() {
    for (name, signal) in [
        ("SIGUSR1", Signal::SigUsr1),
        ("SIGUSR2", Signal::SigUsr2),
        ("SIGTERM", Signal::SigTerm),
        ("SIGINT", Signal::SigInt),
        ("SIGHUP", Signal::SigHup),
        ("SIGQUIT", Signal::SigQuit),
        ("SIGALRM", Signal::SigAlrm),
        ("SIGCONT", Signal::SigCont),
        ("SIGWINCH", Signal::SigWinch),
    ] {
        let fields = format!("  disruption: {{grace: 1m, checkpoint: {{signal: {name}}}}}");
        let checkpoint = gang(&fields).disruption.checkpoint.unwrap();
        assert_eq!((checkpoint.signal, checkpoint.every), (Some(signal), None));
        assert_eq!(serde_json::to_value(signal).unwrap(), name, "as recordings have it");
    }
}

#[test]
fn checkpoint_may_be_periodic_without_a_signal() {
    let read =
        gang("  disruption: {minRuntime: 0, grace: 0s, checkpoint: {every: 10m}}").disruption;
    let checkpoint = read.checkpoint.unwrap();
    assert_eq!((checkpoint.signal, checkpoint.every), (None, Some(Span::mins(10))));
    assert_eq!(
        (read.min_runtime, read.grace, checkpoint.restart),
        (Span::ZERO, Span::ZERO, Span::ZERO)
    );
}

#[test]
fn invalid_disruption_is_reported() {
    check_gang(&[
        (
            "  disruption: {preemptible: maybe}",
            &["5:29: spec.disruption.preemptible: must be true or false, not `maybe`"],
        ),
        (
            "  disruption: {checkpoint: {signal: SIGUSR3}}",
            &[
                "5:37: spec.disruption.checkpoint.signal: `SIGUSR3` is none of `SIGUSR1`, `SIGUSR2`, `SIGTERM`, `SIGINT`, `SIGHUP`, `SIGQUIT`, `SIGALRM`, `SIGCONT`, `SIGWINCH`; did you mean `SIGUSR1`?",
            ],
        ),
        (
            "  disruption: {checkpoint: {signal: SIGKILL}}",
            &[
                "5:37: spec.disruption.checkpoint.signal: `SIGKILL` is none of `SIGUSR1`, `SIGUSR2`, `SIGTERM`, `SIGINT`, `SIGHUP`, `SIGQUIT`, `SIGALRM`, `SIGCONT`, `SIGWINCH`",
            ],
        ),
        (
            "  disruption: {checkpoint: {}}",
            &["5:16: spec.disruption.checkpoint: must say `signal`, `every` or both"],
        ),
        (
            "  disruption: {checkpoint: {restart: 1m}}",
            &["5:16: spec.disruption.checkpoint: must say `signal`, `every` or both"],
        ),
        (
            "  disruption: {checkpoint: {every: 0}}",
            &["5:36: spec.disruption.checkpoint.every: must be longer than 0"],
        ),
        (
            "  disruption: {checkpoint: {every: 1h, restrat: 1m}}",
            &["5:40: spec.disruption.checkpoint.restrat: unknown field; did you mean `restart`?"],
        ),
        (
            "  disruption: {checkpoint: SIGUSR1}",
            &["5:28: spec.disruption.checkpoint: must be a mapping, not `SIGUSR1`"],
        ),
        (
            "  disruption: {grace: -1s}",
            &[
                "5:23: spec.disruption.grace: `-1s` is not a duration: write numbers with units w, d, h, m, s or ms, such as 90s, 15m or 1h30m",
            ],
        ),
        (
            "  disruption: {minruntime: 1m}",
            &["5:16: spec.disruption.minruntime: unknown field; did you mean `minRuntime`?"],
        ),
    ]);
}

#[test]
fn invalid_scaling_is_reported() {
    for bad in ["0.5", "1.01", "0", "-0.9", "90"] {
        let fields = format!("  scaling: {{efficiency: {bad}}}");
        let reason =
            format!("5:25: spec.scaling.efficiency: must be above 0.5 and at most 1, not {bad}");
        check_gang(&[(&fields, &[&reason])]);
    }
    check_gang(&[
        (
            "  scaling: {efficiency: 90%}",
            &["5:25: spec.scaling.efficiency: must be a number, not `90%`"],
        ),
        (
            "  scaling: {resizeCost: 30}",
            &[
                "5:25: spec.scaling.resizeCost: `30` is not a duration: write numbers with units w, d, h, m, s or ms, such as 90s, 15m or 1h30m",
            ],
        ),
        ("  scaling: {resize: 30s}", &["5:13: spec.scaling.resize: unknown field"]),
        ("  scaling: linear", &["5:12: spec.scaling: must be a mapping, not `linear`"]),
    ]);
}

#[test]
fn scaling_is_linear_with_half_a_minute_per_resize_by_default() {
    let of = |efficiency, resize| Scaling { efficiency, resize };
    for (fields, scaling) in [
        ("", Scaling::default()),
        ("  scaling: {}", Scaling::default()),
        ("  scaling: {efficiency: 1}", of(1_000, Span::secs(30))),
        ("  scaling: {efficiency: 0.57}", of(570, Span::secs(30))),
        // The smallest efficiency above a half.
        ("  scaling: {efficiency: 0.5001}", of(501, Span::secs(30))),
        ("  scaling: {resizeCost: 0}", of(1_000, Span::ZERO)),
    ] {
        assert_eq!(gang(fields).scaling, scaling, "{fields}");
    }
}

#[test]
fn fields_without_effect_are_warnings() {
    let elastic = "min: 1, max: 4";
    for (role, fields, expected) in [
        (
            "min: 2",
            "  scaling: {efficiency: 0.9}",
            "a.yaml:5:3: spec.scaling: says what more members bring, but no role has `max` above `min`",
        ),
        (
            elastic,
            "  disruption: {preemptible: false, minRuntime: 30m, grace: 1m}",
            "a.yaml:5:48: spec.disruption.minRuntime: has no effect: with `preemptible: false` the gang is never preempted",
        ),
        (
            elastic,
            "  disruption: {checkpoint: {signal: SIGUSR1}}",
            "a.yaml:5:37: spec.disruption.checkpoint.signal: leaves no time to save: `disruption.grace` is 0",
        ),
    ] {
        assert_eq!(warnings(role, fields), [expected]);
    }
    for (role, fields) in [
        (elastic, "  scaling: {efficiency: 0.9}"),
        ("min: 2", "  disruption: {preemptible: false, grace: 1m}"),
        ("min: 2", "  disruption: {grace: 1m, minRuntime: 5m, checkpoint: {signal: SIGTERM}}"),
        ("min: 2", "  disruption: {preemptible: false, checkpoint: {every: 5m}}"),
    ] {
        assert_eq!(warnings(role, fields), [""; 0], "{fields}");
    }
}
