//! `muster simulate`, without traces.

use crate::muster::{empty_dir, muster, muster_in, write};

const TRAINING: &[&str] =
    &["simulate", "--workload", "training", "--jobs", "50", "--nodes", "64", "--json"];

#[test]
fn simulated_quickstart_agrees_with_its_timeline() {
    let table = muster(&["simulate", "examples/quickstart.yaml"]).exits(0);
    assert_eq!(table.err, "");
    for (row, value) in
        [("jobs done", "3 of 3"), ("orders / rolled back", "2 / 1"), ("promises broken", "0")]
    {
        let found = table.out.lines().find(|line| line.contains(row)).unwrap_or_default();
        assert!(found.contains(value), "{row}: {value}\n{}", table.out);
    }
}

#[test]
fn bought_hours_and_cost_add_up_where_there_are_pools() {
    let json = muster(&["simulate", "--json", "examples/quickstart.yaml"]).exits(0).json();
    let (summary, supply) = (&json[0], &json[0]["supply"]);
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let sum = |map: &serde_json::Value| {
        map.as_object().expect("by state").values().map(number).sum::<f64>()
    };
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    assert!(near(sum(&supply["gpu_hours"]), number(&supply["bought_gpu_hours"])), "{supply}");
    assert!(near(sum(&supply["node_hours"]), number(&summary["node_hours"])), "{supply}");
    assert!(near(sum(&supply["money"]), number(&summary["cost"])), "{supply}");
    let cost = |list: &str| -> f64 {
        supply[list].as_array().expect("a list").iter().map(|paid| number(&paid["cost"])).sum()
    };
    let all = number(&summary["cost"]);
    assert!(near(cost("pools"), all) && near(cost("tiers"), all), "{supply}");
    assert!(near(cost("queues") + number(&supply["shared"]), all), "{supply}");
    assert_eq!(supply["rollbacks"][0]["reason"], "stock-out", "{supply}");
    let table = muster(&["simulate", "examples/quickstart.yaml"]).exits(0).out;
    for row in ["GPU-hours bought", "gathering", "warm", "idle after use", "cost of rollbacks"] {
        assert!(table.contains(row), "{row}\n{table}");
    }
    let fixed = muster(TRAINING).exits(0).json();
    assert_eq!(fixed[0].get("supply"), None, "nothing can be bought");
    assert!(fixed[0]["gang_hit_rate"].is_number());
    let table = muster(&TRAINING[..TRAINING.len() - 1]).exits(0).out;
    assert!(!table.contains("GPU-hours bought") && !table.contains("cost"), "{table}");
}

#[test]
fn same_seed_gives_the_same_run() {
    let seeded = |seed: &str| muster(&[TRAINING, &["--seed", seed]].concat()).exits(0);
    let (once, again, other) = (seeded("1"), seeded("1"), seeded("2"));
    assert_eq!((&once.out, &once.err), (&again.out, &again.err));
    assert_ne!(once.out, other.out);
}

#[test]
fn unfinished_jobs_are_listed_with_their_reason() {
    let run = muster(TRAINING).exits(0);
    let summary = &run.json()[0];
    assert_ne!(summary["not_ended"], 0, "this workload has gangs too wide for a rack: {summary}");
    let said = format!("warning: muster: {} of 50 jobs unfinished:\n  job-", summary["not_ended"]);
    assert!(run.err.starts_with(&said), "{}", run.err);
    assert!(run.err.contains("x worker could ever run at once in one rack\n"), "{}", run.err);
}

#[test]
fn two_policies_give_two_columns_or_two_json_lines() {
    let policies = ["--policy", "fifo", "--policy", "fifo-overtake"];
    let json = muster(&[TRAINING, &policies].concat()).exits(0);
    let lines = json.json();
    let names: Vec<&str> = lines.iter().filter_map(|line| line["policy"].as_str()).collect();
    assert_eq!(names, ["fifo", "fifo-overtake"]);
    for line in &lines {
        assert_eq!(line["jobs"], 50);
        assert_eq!(line["violations"], 0);
        for key in ["avg_bsld", "max_wait_s", "mean_wait_s", "cost"] {
            assert!(line[key].is_number(), "{key} in {line}");
        }
    }
    assert_ne!(lines[0]["mean_wait_s"], lines[1]["mean_wait_s"], "they order differently");

    let table = muster(&[&TRAINING[..TRAINING.len() - 1], &policies].concat()).exits(0).out;
    let header = table.lines().nth(1).expect("a header");
    let columns: Vec<&str> = header.split(['│', '┆']).map(str::trim).collect();
    assert_eq!(columns, ["", "", "fifo", "fifo-overtake", ""]);
}

#[test]
fn unchecked_promises_are_reported_as_not_checked() {
    let json = muster(&[TRAINING, &["--no-check"]].concat()).exits(0).json();
    assert_eq!(json[0].get("violations"), None);
    let table = muster(&["simulate", "--no-check", "examples/quickstart.yaml"]).exits(0).out;
    let row = table.lines().find(|line| line.contains("promises broken")).expect("the row");
    assert!(row.contains("not checked"), "{row}");
}

#[test]
fn until_stops_the_simulation() {
    let run = muster(&["simulate", "--until", "1m", "--json", "examples/quickstart.yaml"]).exits(0);
    assert_eq!(run.json()[0]["ended"], 0);
    assert!(run.err.starts_with("warning: muster: 3 of 3 jobs unfinished:\n"), "{}", run.err);
    assert!(run.err.contains("  research/tokenize: running\n"), "{}", run.err);
    let refused = muster(&["simulate", "--until", "soon", "examples/quickstart.yaml"]).exits(2);
    assert!(refused.err.contains("`soon` is not a duration"), "{}", refused.err);
}

#[test]
fn why_shows_what_a_gang_waits_for_and_what_would_start_it() {
    let args = ["simulate", "--until", "6m", "--why", "research/mixtral-ft", "--why", "nobody"];
    let run = muster(&[&args[..], &["examples/quickstart.yaml"]].concat()).exits(0);
    let line = |start: &str| run.out.lines().any(|line| line.starts_with(start));
    assert!(line("research/mixtral-ft: #1 in line: "), "{}", run.out);
    assert!(line("  it is expected to start in "), "{}", run.out);
    assert!(line("  it would start now with "), "{}", run.out);
    assert!(line("nobody: there is no such gang"), "{}", run.out);
}

#[test]
fn cloud_that_never_delivers_ends_the_simulation() {
    let quickstart =
        std::fs::read_to_string(crate::muster::root().join("examples/quickstart.yaml"));
    let boots = "boot: {launch: 150s";
    let never = format!("failures: {{bootFailed: 1}}\n      {boots}");
    let dir = empty_dir("never-boots");
    write(&dir, "job.yaml", quickstart.expect("it is there").replace(boots, &never));
    let run = muster_in(&dir, &["simulate", "--json", "job.yaml"]).exits(0);
    let summary = &run.json()[0];
    assert_eq!((&summary["ended"], &summary["violations"]), (&1.into(), &0.into()), "{summary}");
    assert!(run.err.contains("research/llama-ddp: #1 in line: "), "{}", run.err);
}

#[test]
fn errors_without_demand_or_supply_name_the_options() {
    let nothing = muster(&["simulate", "--nodes", "4"]).exits(2);
    assert_eq!(
        nothing.err,
        "error: nothing to run: give manifests with gangs, or a trace with --trace, --swf or --csv, or \
         --workload\n"
    );
    let nowhere = muster(&["simulate", "--workload", "training"]).exits(2);
    assert_eq!(
        nowhere.err,
        "error: nowhere to run: give manifests with nodes or pools, or --nodes, or an SWF trace with --procs\n"
    );
    assert_eq!((nothing.out, nowhere.out), (String::new(), String::new()));
}

#[test]
fn wrong_command_line_is_refused_before_the_simulation() {
    for (args, reason) in [
        (&["--policy", "best"][..], "no such policy; there are fifo, fifo-overtake"),
        (&["--workload", "tea"], "`tea` is not a workload: known are training, mixed, bursty"),
        (&["--nodes", "4000000000"], "4000000000 is not in 0..=1000000"),
        (&["--gpus-per-node", "65"], "65 is not in 0..=64"),
        (&["--jobs", "5"], "--workload <NAME>"),
        (&["--procs", "5"], "--procs is for a trace in Standard Workload Format"),
        (&["--replay", "f"], "cannot be used with"),
        (&["--begin", "2026-11-30T08:00:00"], "has no offset from UTC: write 2026-11-30T08:00:00Z"),
        (&["--begin", "monday"], "must be a date and time with an offset"),
        (&["--starts", "no/such/dir"], "no/such/dir: cannot be written: No such file"),
        (&["--record", "no/such/dir"], "no/such/dir: cannot be written: No such file"),
    ] {
        let refused = muster(&[&["simulate", "examples/quickstart.yaml"], args].concat()).exits(2);
        assert_eq!(refused.out, "", "{args:?}");
        assert!(refused.err.contains(reason), "{args:?}: {}", refused.err);
    }
}
