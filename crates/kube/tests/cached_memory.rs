//! Measures the memory that the cache keeps of an object that the API server stores.

use std::alloc::System;

use muster_kube::{Bounds, kept_of};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes of the object as JSON, bytes of memory that the cache keeps of it, and bytes that the budget counts for it.
fn measure(api_version: &str, kind: &str, object: &Value) -> (usize, usize, usize) {
    let json = object.to_string();
    // The first call fills a table of kinds, whose memory is not the object's.
    let _ = kept_of(api_version, kind, &json, &Bounds::default());
    let region = Region::new(MEMORY);
    let (object, counted) = kept_of(api_version, kind, &json, &Bounds::default()).expect("kept");
    let change = region.change();
    let kept = change.bytes_allocated - change.bytes_deallocated;
    drop(object);
    (json.len(), kept, counted)
}

fn job(containers: &[Value]) -> Value {
    json!({
        "metadata": {"name": "train", "namespace": "team", "uid": "0b9d", "labels": {"app": "train"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x".repeat(20_000)},
            "managedFields": (0..200).map(|at| json!({"fieldsV1": {format!("f:{at}"): {}}})).collect::<Vec<_>>()},
        "spec": {"parallelism": 8, "completions": 8, "template": {"spec": {"containers": containers}}},
        "status": {"conditions": [{"type": "Complete", "status": "False", "message": "m".repeat(500)}]},
    })
}

/// A single test: the allocator would count tests that run at the same time.
#[test]
fn cached_memory_follows_the_fields_read_and_is_counted() {
    let env: Vec<Value> =
        (0..2_000).map(|at| json!({"name": format!("E{at}"), "value": "v".repeat(20)})).collect();
    let container = json!({"name": "a", "image": "x", "env": env, "args": ["y".repeat(50_000)],
        "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "8"}}});
    let (stored, kept, counted) = measure("batch/v1", "Job", &job(&[container]));
    println!("a Job: {kept} bytes kept of {stored} stored, counted as {counted}");
    assert!(kept * 20 < stored, "{kept} of {stored}");
    assert!(kept <= counted, "{kept} are counted as {counted}");

    // The most expensive content: as many mappings with one entry as the bounds allow.
    let many: Vec<Value> = (0..1_500).map(|at| json!({"a": {"b": at}})).collect();
    let gang = json!({"metadata": {"name": "odd", "namespace": "team"}, "spec": {"x": many}});
    let (stored, kept, counted) = measure("muster.sh/v1alpha1", "Gang", &gang);
    println!(
        "a Gang of small mappings: {kept} bytes kept of {stored} stored, counted as {counted}"
    );
    assert!(kept <= counted && counted < 2 * kept, "{kept} are counted as {counted}");

    // A template is kept as JSON text.
    let template =
        json!({"spec": {"junk": (0..10_000).map(|_| json!({"a": {}})).collect::<Vec<_>>()}});
    let role = json!({"name": "worker", "min": 1, "template": template});
    let gang =
        json!({"metadata": {"name": "large", "namespace": "team"}, "spec": {"roles": [role]}});
    let (stored, kept, counted) = measure("muster.sh/v1alpha1", "Gang", &gang);
    println!("a Gang with a template: {kept} bytes kept of {stored} stored, counted as {counted}");
    assert!(kept < stored + 8_192, "{kept} of {stored}");
    assert!(kept <= counted, "{kept} are counted as {counted}");
}
