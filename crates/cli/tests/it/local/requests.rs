//! Requests that the control plane accepts or refuses, and retention.

use super::control_plane::{ControlPlane, TestDir};

fn gang(name: &str, min: u32) -> String {
    format!(
        "kind: Gang\nmetadata: {{name: {name}}}\nspec: {{roles: [{{name: w, min: {min}, run: {{command: ['true']}}}}]}}\n"
    )
}

#[test]
fn gang_of_a_million_members_is_refused_before_it_starts() {
    let place = TestDir::new("million");
    let up = ControlPlane::start(&place.data(), &[]);
    let (code, answer) = up.apply(&gang("horde", 1_000_000), None).expect("an answer");
    assert_eq!(code, 422, "{answer}");
    let why = answer["error"]["message"].as_str().expect("why");
    assert!(why.contains("spec.roles[0].min") && why.contains("1024"), "{why}");
    let (code, answer) = up.apply(&gang("some", 2), None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
    up.until_over("some");
}

#[test]
fn apply_is_all_or_nothing_and_dry_run_agrees() {
    let place = TestDir::new("all-or-none");
    let up = ControlPlane::start(&place.data(), &["--no-local"]);
    // The last queue would be below itself; everything before it is valid.
    let text = "kind: Queue\nmetadata: {name: a}\nspec: {}\n---\n\
                kind: Queue\nmetadata: {name: b}\nspec: {parent: a}\n";
    let (code, answer) = up.apply(text, None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
    let (code, answer) = up.apply(&gang("first", 2), None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
    let circle = format!(
        "{}---\nkind: Queue\nmetadata: {{name: c}}\nspec: {{}}\n---\n\
         kind: Queue\nmetadata: {{name: a}}\nspec: {{parent: b}}\n",
        gang("second", 1)
    );
    let headers = [("content-type", "application/yaml")];
    let ask = |path: &str| up.ask("POST", path, &headers, &circle);
    let (dry, said) = ask("/v1/apply?dryRun=true").expect("an answer");
    let (code, answer) = ask("/v1/apply").expect("an answer");
    assert_ne!(code, 200, "{answer}");
    assert_eq!((dry, &said), (code, &answer), "a dry run says what would come of it");
    let names = |kind: &str| {
        let list = up.get(&format!("/v1/{kind}"));
        let items = list["items"].as_array().expect("items").iter();
        items
            .map(|one| one["metadata"]["name"].as_str().unwrap_or("").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("gangs"), ["first"], "half of it was taken");
    assert_eq!(names("queues"), ["a", "b", "default"], "half of it was taken");
}

#[test]
fn pool_of_this_machine_is_not_simulated() {
    let place = TestDir::new("pool-local");
    let up = ControlPlane::start(&place.data(), &[]);
    let pool =
        "kind: Pool\nmetadata: {name: here}\nspec: {tier: reserved, provider: {local: {}}}\n";
    let (code, answer) = up.apply(pool, None).expect("an answer");
    assert_eq!(code, 422, "{answer}");
    let why = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("this machine is a node by itself"), "{answer}");
}

#[test]
fn what_if_uses_supply_of_its_manifests_and_bounds_gangs() {
    let place = TestDir::new("what-if");
    let up = ControlPlane::start(&place.data(), &["--no-local"]);
    let asked = |text: &str| {
        let headers = [("content-type", "application/yaml")];
        let answer = up.ask("POST", "/v1/what-if", &headers, text);
        let (code, body) = answer.expect("an answer");
        (code, super::http::json(&body))
    };
    let (code, alone) = asked(&gang("asked", 1));
    assert_eq!(code, 200, "{alone}");
    assert!(alone["items"][0].get("starts").is_none_or(serde_json::Value::is_null), "{alone}");
    let node =
        "kind: Node\nmetadata: {name: box}\nspec: {allocatable: {cpu: 4, memory: 4Gi}}\n---\n";
    let (code, answer) = asked(&format!("{node}{}", gang("asked", 1)));
    assert_eq!(code, 200, "{answer}");
    assert!(
        answer["items"][0]["lines"][0].as_str().is_some_and(|l| l.contains("start now")),
        "{answer}"
    );
    assert_eq!(up.get("/v1/nodes")["items"].as_array().map(Vec::len), Some(0), "nothing was taken");
    let many: Vec<String> = (0..65).map(|number| gang(&format!("g{number}"), 1)).collect();
    let (code, answer) = asked(&many.join("---\n"));
    assert_eq!(code, 422, "{answer}");
}

#[test]
fn old_gangs_are_removed_and_their_usage_is_kept() {
    let place = TestDir::new("retention");
    let up = ControlPlane::start(&place.data(), &["--keep", "1s"]);
    let (code, answer) = up.apply(&gang("old", 1), None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
    up.until("it was over and is removed", |up| {
        let gone = up.get("/v1/gangs")["items"].as_array().is_some_and(Vec::is_empty);
        let swept = std::fs::read_dir(place.data().join("runs")).expect("runs").count() == 0;
        (gone && swept).then_some(())
    });
    let usage = up.get("/v1/usage?by=gang");
    assert_eq!(usage["items"][0]["key"], "default/old", "{usage}");
}

#[test]
fn no_local_removes_the_node_of_this_machine() {
    let place = TestDir::new("no-local");
    let up = ControlPlane::start(&place.data(), &[]);
    assert_eq!(up.get("/v1/nodes")["items"].as_array().map(Vec::len), Some(1));
    up.end();
    let up = ControlPlane::start(&place.data(), &["--no-local"]);
    up.until("it is gone", |up| {
        up.get("/v1/nodes")["items"].as_array().is_some_and(Vec::is_empty).then_some(())
    });
    use std::os::unix::fs::PermissionsExt;
    let mode = place.data().metadata().expect("a directory").permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "only the owner can read the data");
}

#[test]
fn followed_logs_end_when_the_keeper_is_killed() {
    let place = TestDir::new("logs-end");
    let up = ControlPlane::start(&place.data(), &[]);
    let text =
        gang("talks", 1).replace("['true']", "[sh, -c, 'echo hello; printf half; sleep 600']");
    let (code, answer) = up.apply(&text, None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
    up.until("it talks", |_| {
        let said = std::fs::read_to_string(place.data().join("runs/1/logs/0.out"));
        said.is_ok_and(|said| said.contains("half")).then_some(())
    });
    let (address, bearer) = (up.address().to_owned(), format!("Bearer {}", up.token()));
    let follows = std::thread::spawn(move || {
        let headers = [("accept", "text/plain"), ("authorization", bearer.as_str())];
        let path = "/v1/namespaces/default/gangs/talks/logs?follow=true";
        super::http::ask(&address, "GET", path, &headers, "").expect("logs")
    });
    let keeper = place.processes().into_iter().find(|(_, command)| command.contains(" keep "));
    let (pid, _) = keeper.expect("a keeper");
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.expect("kill").success());
    let (code, said) = follows.join().expect("it ends");
    assert_eq!(code, 200, "{said}");
    assert!(said.contains("hello") && said.contains("half"), "{said}");
}
