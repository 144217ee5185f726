use std::path::PathBuf;

use rusqlite::Connection;

use crate::store::database::*;
use crate::store::runs::{OpenRun, RunRow};
use crate::store::usage::By;

/// A separate directory for each test, removed with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("muster-store-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn database(&self) -> PathBuf {
        self.0.join("muster.db")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn committed_writes_survive_reopening_and_others_do_not() {
    let place = Place::new("commit");
    let store = Store::open(&place.database()).expect("a database");
    store.begin().expect("begun");
    store.set_fact("kept", "yes").expect("written");
    store.commit().expect("committed");
    store.begin().expect("begun");
    store.set_fact("lost", "yes").expect("written");
    drop(store);
    let store = Store::open(&place.database()).expect("a database");
    assert_eq!(store.fact("kept").expect("read").as_deref(), Some("yes"));
    assert_eq!(store.fact("lost").expect("read"), None);
}

#[test]
fn damaged_page_is_detected_on_open() {
    let place = Place::new("damage");
    let store = Store::open(&place.database()).expect("a database");
    store.begin().expect("begun");
    for number in 0..2_000 {
        store.set_fact(&format!("fact-{number}"), &"x".repeat(100)).expect("written");
    }
    store.commit().expect("committed");
    drop(store);
    let mut bytes = std::fs::read(place.database()).expect("a file");
    let middle = bytes.len() / 2 / 4_096 * 4_096;
    bytes[middle..middle + 4_096].fill(0xa5);
    std::fs::write(place.database(), bytes).expect("damaged");
    let error = Store::open(&place.database()).expect_err("damage");
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("restore it from a copy"), "{error}");
}

#[test]
fn foreign_database_is_refused_and_left_alone() {
    let place = Place::new("foreign");
    std::fs::write(
        place.database(),
        "this is no database, and it is long enough to look at".repeat(40),
    )
    .expect("written");
    let error = Store::open(&place.database()).expect_err("no database");
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    std::fs::remove_file(place.database()).expect("removed");
    let other = Connection::open(place.database()).expect("a database");
    other.execute_batch("CREATE TABLE theirs (a)").expect("theirs");
    drop(other);
    let error = Store::open(&place.database()).expect_err("not ours");
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
}

#[test]
fn database_of_a_newer_schema_is_refused() {
    let place = Place::new("newer");
    drop(Store::open(&place.database()).expect("a database"));
    let newer = Connection::open(place.database()).expect("a database");
    newer.pragma_update(None, "user_version", 99).expect("set");
    drop(newer);
    let error = Store::open(&place.database()).expect_err("newer");
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
}

#[test]
fn usage_sums_over_the_requested_interval() {
    let place = Place::new("usage");
    let store = Store::open(&place.database()).expect("a database");
    let gang = store.add_gang("team/a", None, &serde_json::Value::Null, 0).expect("a gang");
    let run = store.add_run(&run_of(gang)).expect("a run");
    store.run_started(run, 1_000).expect("started");
    store.run_ended(run, 5_000, "succeeded").expect("ended");
    let all = store.used(By::Queue, 0, 10_000, 10_000).expect("sums");
    let [sum] = all.as_slice() else { panic!("one queue: {all:?}") };
    assert_eq!((sum.key.as_str(), sum.gangs, sum.runs), ("research", 1, 2));
    assert_eq!((sum.gpu_milli_ms, sum.cpu_milli_ms), (8_000 * 4_000, 4_000 * 4_000));
    assert!((sum.cost - 4.0).abs() < 1e-9, "{}", sum.cost);
    let part = store.used(By::User, 2_000, 3_000, 10_000).expect("sums");
    assert_eq!(part[0].gpu_milli_ms, 8_000 * 1_000);
    assert!(store.used(By::User, 6_000, 7_000, 10_000).expect("sums").is_empty());
}

#[test]
fn database_of_the_first_schema_is_migrated_with_its_content() {
    let place = Place::new("upgrade");
    let old = Connection::open(place.database()).expect("a database");
    old.execute_batch(SCHEMAS[0]).expect("the first schema");
    old.execute_batch(
        "PRAGMA application_id = 1297437524; PRAGMA user_version = 1;
         INSERT INTO gangs VALUES (4, 'team/a', NULL, '{}', 1, 5, '{}');
         INSERT INTO runs VALUES (7, 4, 'research', 'ada', 2, 8000, 4000, 3600000000, 500, 900, 1000, 5000, 'succeeded');
         INSERT INTO members VALUES (7, 0, 'worker', 'box', 5000, 0, NULL);
         INSERT INTO log VALUES (1, 1, '{}');",
    )
    .expect("what was in it");
    drop(old);
    let store = Store::open(&place.database()).expect("brought up to date");
    let gangs = store.gangs().expect("gangs");
    assert_eq!((gangs.len(), gangs[0].uid, gangs[0].name.as_str()), (1, 4, "team/a"));
    let sums = store.used(By::Gang, 0, 10_000, 10_000).expect("sums");
    assert_eq!((sums[0].key.as_str(), sums[0].gpu_milli_ms), ("team/a", 8_000 * 4_000));
    // Numbers of deleted gangs are not reused.
    assert_eq!(store.forget_gangs("team/a").expect("forgotten"), [7]);
    assert_eq!(store.add_gang("team/b", None, &serde_json::Value::Null, 0).expect("a gang"), 5);
    assert_eq!(store.add_run(&run_of(5)).expect("a run"), 8);
    assert_eq!(store.used(By::Gang, 0, 10_000, 10_000).expect("sums"), sums, "accounts stay");
}

fn run_of(gang: i64) -> RunRow<'static> {
    RunRow {
        gang,
        name: "team/a",
        queue: "research",
        user: "ada",
        gpu_milli: 8_000,
        cpu_milli: 4_000,
        hourly: 3_600_000_000,
        waited_ms: 500,
        decided: 900,
        members: 2,
    }
}

#[test]
fn usage_by_day_splits_runs_at_midnight() {
    const DAY: i64 = 86_400_000;
    const HOUR: i64 = 3_600_000;
    let place = Place::new("days");
    let store = Store::open(&place.database()).expect("a database");
    let run = store.add_run(&run_of(1)).expect("a run");
    store.run_started(run, DAY - HOUR).expect("started");
    store.run_ended(run, 3 * DAY + 2 * HOUR, "succeeded").expect("ended");
    let sums = store.used(By::Day, 0, i64::MAX, 9 * DAY).expect("sums");
    let days: Vec<(&str, i64, u64, i64)> = sums
        .iter()
        .map(|sum| (sum.key.as_str(), sum.gpu_milli_ms / 8_000 / HOUR, sum.runs, sum.waited_ms))
        .collect();
    let expected = [
        ("1970-01-01", 1, 2, 500),
        ("1970-01-02", 24, 0, 0),
        ("1970-01-03", 24, 0, 0),
        ("1970-01-04", 2, 0, 0),
    ];
    assert_eq!(days, expected);
    let whole = store.used(By::Queue, 0, i64::MAX, 9 * DAY).expect("sums");
    let cost: f64 = sums.iter().map(|sum| sum.cost).sum();
    assert!((whole[0].cost - cost).abs() < 1e-6, "{} and {cost}", whole[0].cost);
}

#[test]
fn resized_run_is_charged_for_what_it_held_in_each_part() {
    let place = Place::new("changed");
    let store = Store::open(&place.database()).expect("a database");
    let gang = store.add_gang("team/a", None, &serde_json::Value::Null, 0).expect("a gang");
    let run = store.add_run(&run_of(gang)).expect("a run");
    store.run_started(run, 1_000).expect("started");
    let fewer = RunRow { gpu_milli: 2_000, waited_ms: 0, members: 0, ..run_of(gang) };
    store.run_changed(run, 3_000, &fewer).expect("changed");
    let open = store.open_runs().expect("runs");
    let expected = OpenRun { run, gang, started: Some(3_000), changed: Some(3_000) };
    assert_eq!(open, [expected], "it is one run, with one directory");
    assert!(!store.has_ended(run).expect("asked"));
    store.run_ended(run, 5_000, "succeeded").expect("ended");
    assert!(store.has_ended(run).expect("asked"));
    assert_eq!(store.runs_of(gang).expect("runs"), [run]);
    let sums = store.used(By::Gang, 0, 10_000, 10_000).expect("sums");
    let [sum] = sums.as_slice() else { panic!("one gang: {sums:?}") };
    assert_eq!((sum.gangs, sum.runs, sum.waited_ms), (1, 2, 500));
    assert_eq!(sum.gpu_milli_ms, 8_000 * 2_000 + 2_000 * 2_000);
    assert_eq!(store.forget_gangs("team/a").expect("forgotten"), [run]);
}
