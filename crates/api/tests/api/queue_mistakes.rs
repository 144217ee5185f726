//! Errors in queues, and warnings about guarantees and limits that contradict each other.

use muster_core::time::Span;
use proptest::prelude::*;

use crate::mistakes::check;
use crate::{errors, good};

/// A queue with these fields, on line 3.
fn queue(fields: &str) -> String {
    format!("kind: Queue\nmetadata: {{name: q}}\nspec: {{{fields}}}\n")
}

fn warnings(text: &str) -> Vec<String> {
    good(text).warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn queues() {
    check(&[
        (
            "kind: Queue\nmetadata: {name: q}\nspec: {parent: nobody}\n",
            &["3:16: spec.parent: there is no Queue named `nobody`"],
        ),
        (
            "kind: Queue\nmetadata: {name: q}\nspec: {weight: 0}\n",
            &["3:16: spec.weight: must be at least 1, not 0"],
        ),
        (
            "kind: Queue\nmetadata: {name: q}\nspec: {weight: 1000001}\n",
            &["3:16: spec.weight: must be at most 1000000, not 1000001"],
        ),
        (
            "kind: Queue\nmetadata: {name: q}\nspec: {limit: {nvidia.com/gpu: -1}}\n",
            &["3:32: spec.limit[nvidia.com/gpu]: must not be negative, and is -1"],
        ),
        (
            "kind: Queue\nmetadata: {name: q}\nspec: {userLimit: {cpu: lots}}\n",
            &[
                "3:25: spec.userLimit.cpu: `lots` is not a quantity: write a number with an optional suffix m, k, M, G, T, Ki, Mi, Gi or Ti, such as 8, 500m or 80Gi",
            ],
        ),
        (
            "kind: Queue\nmetadata: {name: q}\nspec: {userlimit: {cpu: 1}}\n",
            &["3:8: spec.userlimit: unknown field; did you mean `userLimit`?"],
        ),
        (
            "kind: Queue\nmetadata: {name: q}\nspec: {halfLife: 12}\n",
            &[
                "3:18: spec.halfLife: `12` is not a duration: write numbers with units w, d, h, m, s or ms, such as 90s, 15m or 1h30m",
            ],
        ),
        (
            "kind: Queue\nmetadata: {name: q}\nspec: {timeSlice: 0}\n",
            &["3:19: spec.timeSlice: must be longer than 0"],
        ),
        (
            "kind: Queue\nmetadata: {name: q}\nspec: {reclaimWithin: soon}\n",
            &[
                "3:23: spec.reclaimWithin: `soon` is not a duration: write numbers with units w, d, h, m, s or ms, such as 90s, 15m or 1h30m",
            ],
        ),
        (
            "kind: Queue\nmetadata: {name: q}\nspec: {evictionsPerHour: -1}\n",
            &["3:26: spec.evictionsPerHour: must be at least 0, not -1"],
        ),
        (
            "kind: Queue\nmetadata: {name: q}\nspec: {evictionsPerHour: 4/h}\n",
            &["3:26: spec.evictionsPerHour: must be a whole number, not `4/h`"],
        ),
        (
            "kind: Queue\nmetadata: {name: q}\nspec: {parent: q}\n",
            &["3:16: spec.parent: queues form a cycle: q -> q"],
        ),
        (
            "{kind: Queue, metadata: {name: a}, spec: {parent: b}}\n---\n{kind: Queue, metadata: {name: b}, spec: {parent: c}}\n---\n{kind: Queue, metadata: {name: c}, spec: {parent: b}}\n",
            &["3:51: spec.parent: queues form a cycle: b -> c -> b"],
        ),
        (
            "{kind: Queue, metadata: {name: a}, spec: {}}\n---\n{kind: Queue, metadata: {name: a}, spec: {}}\n",
            &["3:32: metadata.name: a Queue named `a` is already at a.yaml:1"],
        ),
    ]);
}

#[test]
fn guarantee_above_the_limit_is_rejected() {
    check(&[
        (
            &queue("guaranteed: {cpu: 8, memory: 1Gi}, limit: {cpu: 4500m, memory: 1Gi}"),
            &["3:26: spec.guaranteed.cpu: 8 can never be had: `limit` is 4500m"],
        ),
        (
            &queue("guaranteed: {nvidia.com/gpu: 1}, limit: {nvidia.com/gpu: 0}"),
            &["3:37: spec.guaranteed[nvidia.com/gpu]: 1 GPU can never be had: `limit` is 0 GPUs"],
        ),
        // GPUs of all vendors are counted together.
        (
            &queue("guaranteed: {amd.com/gpu: 6, nvidia.com/gpu: 4}, limit: {nvidia.com/gpu: 8}"),
            &["3:34: spec.guaranteed[amd.com/gpu]: 10 GPUs can never be had: `limit` is 8 GPUs"],
        ),
        (
            &queue("guaranteed: {example.com/nic: 2}, limit: {example.com/nic: 0}"),
            &["3:38: spec.guaranteed[example.com/nic]: 2 can never be had: `limit` is 0"],
        ),
    ]);
}

#[test]
fn user_limit_above_the_limit_is_a_warning() {
    assert_eq!(
        warnings(&queue(
            "userLimit: {nvidia.com/gpu: 16, cpu: 4}, limit: {nvidia.com/gpu: 8, cpu: 4}"
        )),
        [
            "a.yaml:3:36: spec.userLimit[nvidia.com/gpu]: is never reached: 16 GPUs is above `limit`, which is 8 GPUs"
        ]
    );
    assert_eq!(warnings(&queue("userLimit: {nvidia.com/gpu: 16}, limit: {cpu: 4}")), [""; 0]);
}

/// A queue `org` with these fields, and below it a queue for each guarantee.
fn family(org: &str, guarantees: &[&str]) -> String {
    let children = guarantees.iter().enumerate().map(|(i, guaranteed)| {
        format!("---\n{{kind: Queue, metadata: {{name: q{i}}}, spec: {{parent: org, guaranteed: {guaranteed}}}}}\n")
    });
    let org = format!("{{kind: Queue, metadata: {{name: org}}, spec: {{{org}}}}}\n");
    org + &children.collect::<String>()
}

#[test]
fn children_guaranteed_more_than_their_parent_are_a_warning() {
    let two = ["{nvidia.com/gpu: 6, cpu: 8}", "{amd.com/gpu: 6, cpu: 8}"];
    assert_eq!(
        warnings(&family("guaranteed: {nvidia.com/gpu: 8, cpu: 16}", &two)),
        [
            "a.yaml:1:74: spec.guaranteed[nvidia.com/gpu]: the queues below `org` are guaranteed 12 GPUs (`q0`, `q1`), and its guarantee is 8 GPUs"
        ]
    );
    // An amount above the limit is also above the guarantee, and is reported once.
    assert_eq!(
        warnings(&family("guaranteed: {cpu: 4}, limit: {cpu: 15}", &two)),
        [
            "a.yaml:1:80: spec.limit.cpu: the queues below `org` are guaranteed 16 (`q0`, `q1`), and its limit is 15"
        ]
    );
    let many = ["{cpu: 1}"; 6];
    assert_eq!(
        warnings(&family("limit: {cpu: 5}", &many)),
        [
            "a.yaml:1:58: spec.limit.cpu: the queues below `org` are guaranteed 6 (`q0`, `q1`, `q2` and 3 more), and its limit is 5"
        ]
    );
    for enough in
        ["", "limit: {cpu: 16, nvidia.com/gpu: 12}", "limit: {memory: 1}", "guaranteed: {cpu: 16}"]
    {
        assert_eq!(warnings(&family(enough, &two)), [""; 0], "{enough}");
    }
    let huge = "{example.com/nic: 9E}";
    assert_eq!(warnings(&family("limit: {example.com/nic: 5}", &[huge, huge, huge])).len(), 1);
}

#[test]
fn tier_without_a_pool_is_a_warning() {
    assert_eq!(
        warnings(&queue("tiers: [spot]")),
        ["a.yaml:3:16: spec.tiers[0]: no Pool is of tier `spot`"]
    );
}

#[test]
fn half_life_of_zero_is_accepted() {
    for (fields, half_life) in [
        ("halfLife: 0s", Some(Span::ZERO)),
        ("halfLife: 0", Some(Span::ZERO)),
        ("halfLife: 7d", Some(Span::hours(7 * 24))),
        ("halfLife: ", None),
        ("", None),
    ] {
        assert_eq!(good(&queue(fields)).queues[0].half_life, half_life, "{fields}");
    }
}

#[test]
fn zero_reclaim_time_and_zero_evictions_are_accepted() {
    let queue = &good(&queue("reclaimWithin: 0s, evictionsPerHour: 0")).queues[0];
    assert_eq!((queue.reclaim_within, queue.evictions_per_hour), (Some(Span::ZERO), Some(0)));
    assert_eq!(queue.reclaims_within(), Span::ZERO);
}

proptest! {
    #[test]
    fn a_queue_is_refused_exactly_when_a_guarantee_is_above_its_limit(
        guaranteed in prop::collection::vec(prop::option::of(0..4u64), 3),
        limit in prop::collection::vec(prop::option::of(0..4u64), 3),
        user_limit in prop::collection::vec(prop::option::of(0..4u64), 3),
    ) {
        const RESOURCES: [&str; 3] = ["cpu", "memory", "nvidia.com/gpu"];
        let written = |amounts: &[Option<u64>]| -> String {
            let amounts = RESOURCES.iter().zip(amounts);
            amounts.filter_map(|(name, amount)| Some(format!("{name}: {}, ", (*amount)?))).collect()
        };
        let above = |amounts: &[Option<u64>]| {
            let pairs = amounts.iter().zip(&limit);
            pairs.filter(|(amount, limit)| limit.is_some() && *amount > *limit).count()
        };
        let (g, l, u) = (written(&guaranteed), written(&limit), written(&user_limit));
        let text = queue(&format!("guaranteed: {{{g}}}, limit: {{{l}}}, userLimit: {{{u}}}"));
        prop_assert_eq!(errors(&text).len(), above(&guaranteed), "{}", text);
        if above(&guaranteed) == 0 {
            prop_assert_eq!(warnings(&text).len(), above(&user_limit), "{}", text);
        }
    }
}
