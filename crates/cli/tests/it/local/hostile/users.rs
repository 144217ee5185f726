//! A user of one queue who tries to get more than that; and the measures of admins.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::{ADA, BOB, EVE, QUEUES, ROOT, Tenants, as_nobody, gang, wrapped};
use crate::local::control_plane::{ControlPlane, TestDir};
use crate::local::http::ask;
use crate::muster::{command, finish, write_private};

const TOPOLOGY: &str = "kind: Topology\nmetadata: {name: evil}\nspec: {levels: [{name: evil, label: evil.example/rack}]}\n";
const POOL: &str = "kind: Pool\nmetadata: {name: evil}\nspec:\n  provider: {simulated: {}}\n  tier: on-demand\n  \
                    offerings:\n  - {instanceType: a, zone: z, region: r, capacityType: on-demand, \
                    price: 1, allocatable: {cpu: 4, memory: 8Gi}, bootTime: 1s}\n";
const NODE: &str =
    "kind: Node\nmetadata: {name: evil}\nspec: {allocatable: {cpu: 4, memory: 8Gi}}\n";
const QUEUE: &str = "kind: Queue\nmetadata: {name: evil}\nspec: {}\n";

#[test]
fn admin_kinds_are_refused_to_users_in_every_form() {
    let tenants = Tenants::with("hostile-kinds", &["--no-local"]);
    let own = gang("own", "research", "true");
    for (kind, manifest) in
        [("Topology", TOPOLOGY), ("Node", NODE), ("Queue", QUEUE), ("Pool", POOL)]
    {
        for text in
            [manifest.to_owned(), format!("{own}---\n{manifest}"), format!("{manifest}---\n{own}")]
        {
            for path in ["/v1/apply", "/v1/apply?dryRun=true"] {
                let (code, body) = tenants.ask(ADA, "POST", path, &text);
                assert_eq!(code, 403, "{kind} at {path}: {body}");
                assert!(body.contains(kind), "it says what: {body}");
            }
            assert_eq!(tenants.ask(EVE, "POST", "/v1/apply", &text).0, 403);
        }
    }
    assert_eq!(tenants.get(ROOT, "/v1/gangs")["items"].as_array().expect("items").len(), 0);
    // The admin can still create it, so no user has.
    let (code, body) = tenants.apply(ROOT, &TOPOLOGY.replace("evil", "good"));
    assert_eq!(code, 200, "{body}");
    for path in ["/v1/queues/sales", "/v1/nodes/evil", "/v1/pools/evil", "/v1/orders/order-1"] {
        for token in [ADA, EVE] {
            assert_eq!(tenants.ask(token, "DELETE", path, "").0, 403, "{path}");
        }
    }
    for token in [ADA, EVE] {
        assert_eq!(tenants.ask(token, "GET", "/v1/audit", "").0, 403);
    }
}

#[test]
fn memory_of_one_user_is_bounded() {
    let tenants = Tenants::with("hostile-memory", &["--no-local"]);
    let large = |name: &str, bytes: usize| {
        let env = format!("env: {{X: '{}'}}, command:", "x".repeat(bytes));
        gang(name, "research", "true").replace("command:", &env)
    };
    assert_eq!(tenants.announce(ADA, "/v1/apply", 4 << 20), "413", "more than a user may send");
    let (code, body) = tenants.apply(ROOT, &large("a", 4 << 20));
    assert!(code == 422 && body.contains("1048576 are taken at most"), "{code} {body}");
    let (code, body) = tenants.apply(ADA, &large("a", 300_000));
    assert!(code == 422 && body.contains("262144 are taken at most"), "{code} {body}");
    // A hundred times as much memory as text, in a template that is not validated and in a workload's own fields.
    let maps = "{a: {}},".repeat(6_000);
    let template = format!("template: {{spec: {{containers: [], x: [{maps}]}}}}, run:");
    let (code, body) =
        tenants.apply(ADA, &gang("maps", "research", "true").replace("run:", &template));
    assert!(code == 200 || code == 422, "{code} {body}");
    assert!(tenants.memory() < 150, "{} MiB for one gang", tenants.memory());
    assert_eq!(tenants.apply(ADA, &format!("a: [{}]", "{a: {}},".repeat(7_000))).0, 413);
    let mut refused = 0;
    for round in 0..48 {
        let (code, body) = tenants.apply(ADA, &large(&format!("a{round}"), 250_000));
        assert!(matches!(code, 200 | 409), "{body}");
        refused += u32::from(code == 409);
    }
    assert!(refused >= 3, "a user's gangs are bounded together");
    let before = tenants.memory();
    for _ in 0..60 {
        for change in ["hold", "release"] {
            let path = format!("/v1/namespaces/default/gangs/a0/{change}");
            assert_eq!(tenants.ask(ADA, "POST", &path, "").0, 200);
        }
    }
    let after = tenants.memory();
    assert!(after < before + 120, "{before} MiB became {after}: events are bounded in bytes");
    assert_eq!(tenants.apply(BOB, &gang("b", "sales", "true")).0, 200, "others have room");
}

#[test]
fn user_with_endless_changes_is_rate_limited_alone() {
    let tenants = Tenants::with("hostile-rate", &["--no-local"]);
    assert_eq!(tenants.apply(ADA, &gang("a", "research", "true")).0, 200);
    let mut stream = TcpStream::connect(tenants.up.address()).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    let request = format!(
        "POST /v1/namespaces/default/gangs/none/hold HTTP/1.1\r\nhost: localhost\r\n\
         authorization: Bearer {ADA}\r\ncontent-length: 0\r\n\r\n"
    );
    let mut read = [0; 65_536];
    let mut slowed = false;
    for _ in 0..5_000 {
        stream.write_all(request.as_bytes()).expect("sent");
        let count = stream.read(&mut read).expect("an answer");
        if String::from_utf8_lossy(&read[..count]).starts_with("HTTP/1.1 429") {
            slowed = true;
            break;
        }
    }
    assert!(slowed, "it is not rate limited");
    assert_eq!(tenants.apply(BOB, &gang("b", "sales", "true")).0, 200);
    assert_eq!(tenants.ask(ROOT, "DELETE", "/v1/namespaces/default/gangs/a", "").0, 204);
}

#[test]
fn tokens_are_created_expired_and_revoked_without_a_restart_and_audited() {
    let tenants = Tenants::with("hostile-tokens", &["--no-local"]);
    let file = tenants.place.0.join("tokens.yaml");
    let token = |args: &[&str]| {
        let mut token = command();
        token.arg("token").args(args).arg("--tokens").arg(&file);
        finish(&mut token)
    };
    let made = token(&["create", "carl", "--role", "user", "--queue", "research"]).exits(0);
    let carl = made.out.trim().to_owned();
    assert_eq!(tenants.get(&carl, "/v1/whoami")["name"], "carl");
    assert!(!std::fs::read_to_string(&file).expect("there").contains(&carl), "only its digest");
    let brief = token(&["create", "brief", "--role", "admin", "--expires", "1s"]).exits(0);
    let listed = token(&["list"]).exits(0).out;
    assert!(
        listed.contains("carl: user of research") && listed.contains("brief: admin, expire"),
        "{listed}"
    );
    tenants.up.until("it has expired", |_| {
        (tenants.ask(brief.out.trim(), "GET", "/v1/whoami", "").0 == 401).then_some(())
    });
    assert_eq!(tenants.apply(&carl, &gang("carls", "research", "true")).0, 200);
    assert_eq!(tenants.apply(&carl, &gang("carls", "sales", "true")).0, 403);
    // A stream ends when its token is revoked.
    let mut stream = TcpStream::connect(tenants.up.address()).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    let head = format!(
        "GET /v1/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {carl}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    assert!(stream.read(&mut [0; 1_024]).expect("a head") > 0);
    token(&["revoke", "carl"]).exits(0);
    assert_eq!(tenants.ask(&carl, "GET", "/v1/whoami", "").0, 401);
    assert_eq!(tenants.apply(ROOT, &gang("later", "research", "true")).0, 200);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("it ends");
    assert!(!rest.contains("later"), "{rest}");
    token(&["revoke", "carl"]).exits(2);
    let audit = tenants.get(ROOT, "/v1/audit?caller=carl");
    let audit: Vec<_> = audit["items"].as_array().expect("items").iter().collect();
    let records: Vec<_> =
        audit.iter().map(|one| (one["verb"].as_str(), one["outcome"].as_u64())).collect();
    assert_eq!(records, [(Some("apply"), Some(200)), (Some("apply"), Some(403))], "{audit:?}");
    assert_eq!(audit[0]["object"], "Gang default/carls");
}

#[test]
fn workers_get_only_the_allowed_variables_of_the_control_plane() {
    let place = TestDir::new("hostile-environment");
    let program =
        wrapped(&place, "export AWS_SECRET_ACCESS_KEY=hunter2 MUSTER_TOKEN=hunter3 PASSED=yes");
    let up = ControlPlane::start_as(&program, &place.data(), &["--pass-env", "PASSED"]);
    assert_eq!(up.apply(&gang("looks", "default", "env; umask"), None).expect("an answer").0, 200);
    let over = up.until_over("looks");
    assert_eq!(over["status"]["phase"], "Succeeded", "{over}");
    let said = std::fs::read_to_string(place.data().join("runs/1/logs/0.out")).expect("logs");
    assert!(!said.contains("hunter"), "{said}");
    assert!(
        said.contains("PASSED=yes") && said.contains("PATH=") && said.contains("RANK=0"),
        "{said}"
    );
    assert!(!said.trim_end().ends_with("0077"), "workers have the mask of who started it: {said}");
}

#[test]
fn workers_run_as_the_user_of_their_token_and_never_as_root() {
    if as_nobody(&["true"]).is_none() {
        return;
    }
    let place = TestDir::new("hostile-run-as");
    let tokens = "tokens:\n\
        - {name: root, token: root-token-0123456789, role: admin, runAs: nobody}\n\
        - {name: ada, token: ada-token-0123456789ab, role: user, queues: [research], runAs: nobody}\n";
    write_private(&place.0, "tokens.yaml", tokens);
    let file = place.0.join("tokens.yaml");
    let up = ControlPlane::start(&place.data(), &["--tokens", &file.to_string_lossy()]);
    let apply = |token: &str, text: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/yaml")];
        ask(up.address(), "POST", "/v1/apply", &headers, text).expect("an answer")
    };
    assert_eq!(apply(ROOT, QUEUES).0, 200);
    let token = place.data().join("audit.jsonl");
    let script = format!("id -u; id -G; cat {} || echo refused; pwd", token.display());
    let (code, body) =
        apply(ADA, &gang("looks", "research", &script).replace("run: {", "run: {directory: /, "));
    assert_eq!(code, 200, "{body}");
    let said = up.until("it is over", |_| {
        let said = std::fs::read_to_string(place.data().join("runs/1/logs/0.out")).ok()?;
        said.ends_with("/\n").then_some(said)
    });
    assert_eq!(said, "65534\n65534\nrefused\n/\n");
    // A token without a user that is added later is refused too.
    let more = format!("{tokens}- {{name: bob, token: {BOB}, role: user, queues: [research]}}\n");
    write_private(&place.0, "tokens.yaml", more);
    let (code, body) = apply(BOB, &gang("root", "research", "id"));
    assert!(code == 403 && body.contains("would run as root"), "{code} {body}");
}

#[test]
fn large_gang_without_file_handles_is_retried_not_failed() {
    let place = TestDir::new("hostile-files");
    let program = wrapped(&place, "ulimit -n 96");
    let up = ControlPlane::start_as(&program, &place.data(), &[]);
    let large = gang("large", "default", "true").replace("min: 1", "min: 60");
    let large = large.replace("cpu: 10m", "cpu: 1m");
    assert_eq!(up.apply(&large, None).expect("an answer").0, 200);
    let newest = up.get("/v1/queues")["newest"].as_u64().expect("a number");
    let path = format!("/v1/events?after={}&follow=false&name=large", newest - 3);
    up.until("it is said", |up| {
        let (_, events) = up.ask("GET", &path, &[], "").expect("events");
        assert!(!events.contains("\"Failed\""), "{events}");
        events.contains("its members cannot be started now and are tried again").then_some(())
    });
    assert_eq!(up.apply(&gang("small", "default", "true"), None).expect("an answer").0, 200);
    assert_eq!(up.until_over("small")["status"]["phase"], "Succeeded");
    std::thread::sleep(Duration::from_secs(5));
    let phase = up.gang("large")["status"]["phase"].as_str().map(str::to_owned);
    assert_ne!(phase.as_deref(), Some("Failed"));
    assert_eq!(up.post("/v1/namespaces/default/gangs/large/cancel", "").0, 200);
    let over = up.until_over("large");
    assert_eq!(over["status"]["reason"], "Cancelled", "{over}");
}
