//! A viewer who tries to block others or to read more than a viewer may.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{ADA, BOB, EVE, ROOT, Tenants, gang};
use crate::local::http::ask;

#[test]
fn queries_with_keys_of_a_viewer_fill_no_disk() {
    let tenants = Tenants::with("hostile-keys", &["--no-local"]);
    let bearer = format!("Bearer {EVE}");
    let wrong = "--- 1\n".repeat(20_000);
    let database = || {
        let size = |name: &str| {
            std::fs::metadata(tenants.place.data().join(name)).map_or(0, |about| about.len())
        };
        size("muster.db") + size("muster.db-wal")
    };
    let before = database();
    for path in ["/v1/what-if", "/v1/apply?dryRun=true"] {
        for round in 0..10 {
            let key = format!("key-{round}");
            let headers = [
                ("authorization", bearer.as_str()),
                ("content-type", "application/yaml"),
                ("idempotency-key", &key),
            ];
            let (code, body) =
                ask(tenants.up.address(), "POST", path, &headers, &wrong).expect("an answer");
            let wanted = if path == "/v1/what-if" { 422 } else { 403 };
            assert_eq!(code, wanted, "{body}");
            assert!(body.len() < 64 << 10, "{} bytes of findings", body.len());
        }
    }
    assert!(database() < before + (256 << 10), "{before} bytes became {}", database());
    // The same by a user who may change objects: the stored answers are bounded as well.
    let bearer = format!("Bearer {ADA}");
    for round in 0..40 {
        let key = format!("key-{round}");
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", &key)];
        let (code, _) =
            ask(tenants.up.address(), "POST", "/v1/apply", &headers, &wrong).expect("an answer");
        assert_eq!(code, 422);
    }
    assert!(database() < before + (6 << 20), "{before} bytes became {}", database());
}

#[test]
fn large_queries_of_a_viewer_block_no_gang() {
    let tenants = Tenants::new("hostile-question");
    let node = |count: u32| {
        format!(
            "kind: Node\nmetadata: {{name: huge}}\nspec: {{count: {count}, allocatable: {{cpu: 8, memory: 8Gi}}}}\n"
        )
    };
    let many = |members: u32, gangs: u32| -> String {
        let one = |number| {
            format!(
                "---\nkind: Gang\nmetadata: {{name: g{number}}}\nspec: {{queue: research, roles: [{{name: w, min: {members}, resources: {{cpu: 1}}}}]}}\n"
            )
        };
        (0..gangs).map(one).collect()
    };
    for (nodes, members, gangs) in
        [(1_000_000, 1, 1), (20_000, 1, 1), (1, 1_000_000, 64), (1, 1_024, 64), (1, 1, 65)]
    {
        let (code, body) =
            tenants.ask(EVE, "POST", "/v1/what-if", &(node(nodes) + &many(members, gangs)));
        assert_eq!(code, 422, "{nodes} nodes, {gangs} gangs of {members}: {body}");
        assert!(body.contains("too many"), "{body}");
    }
    // The largest permitted query, by as many clients as are permitted.
    let question = node(10_000) + &many(128, 64);
    let (address, bearer) = (tenants.up.address().to_owned(), format!("Bearer {EVE}"));
    let asks: Vec<_> = (0..8)
        .map(|_| {
            let (address, bearer, question) = (address.clone(), bearer.clone(), question.clone());
            std::thread::spawn(move || {
                let headers =
                    [("authorization", bearer.as_str()), ("content-type", "application/yaml")];
                ask(&address, "POST", "/v1/what-if", &headers, &question).map(|(code, _)| code)
            })
        })
        .collect();
    let began = Instant::now();
    assert_eq!(tenants.apply(ADA, &gang("victim", "research", "true")).0, 200);
    assert_eq!(tenants.until_over("victim"), "Succeeded");
    assert!(began.elapsed() < Duration::from_secs(30), "the victim took {:?}", began.elapsed());
    for one in asks {
        let code = one.join().expect("asked").expect("an answer");
        assert!(matches!(code, 200 | 503), "{code}");
    }
    assert!(tenants.memory() < 600, "{} MiB", tenants.memory());
}

/// Opens a stream, and returns the status code of the answer.
fn stream(tenants: &Tenants, token: &str, path: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(tenants.up.address()).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\r\n",
        tenants.up.address()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut first = [0; 12];
    stream.read_exact(&mut first).expect("a status");
    (stream, String::from_utf8_lossy(&first[9..]).into_owned())
}

#[test]
fn streams_per_caller_are_bounded_and_block_no_submission() {
    let tenants = Tenants::new("hostile-streams");
    assert_eq!(tenants.apply(ADA, &gang("talks", "research", "echo hello; sleep 60")).0, 200);
    let logs = "/v1/namespaces/default/gangs/talks/logs?follow=true";
    tenants.up.until("it has logs", |_| {
        (tenants.ask(ADA, "GET", logs.trim_end_matches("?follow=true"), "").0 == 200).then_some(())
    });
    let followed: Vec<_> = (0..16).map(|_| stream(&tenants, ADA, logs)).collect();
    assert!(followed.iter().all(|(_, code)| code == "200"));
    assert_eq!(stream(&tenants, ADA, logs).1, "429", "one too many");
    assert_eq!(stream(&tenants, EVE, logs).1, "403", "a viewer reads no logs");
    let events: Vec<_> = (0..64).map(|_| stream(&tenants, EVE, "/v1/events")).collect();
    assert!(events.iter().all(|(_, code)| code == "200"));
    assert_eq!(stream(&tenants, EVE, "/v1/events").1, "429");
    assert_eq!(stream(&tenants, ROOT, "/v1/events").1, "200", "others are not concerned");
    let began = Instant::now();
    assert_eq!(tenants.apply(BOB, &gang("victim", "sales", "true")).0, 200);
    assert_eq!(tenants.ask(BOB, "GET", "/v1/usage", "").0, 200);
    assert_eq!(tenants.until_over("victim"), "Succeeded");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[test]
fn viewer_sees_variable_names_but_no_values_and_no_logs() {
    let tenants = Tenants::new("hostile-secrets");
    let secret = gang("secret", "research", "echo $KEY; sleep 60")
        .replace("command:", "env: {KEY: hunter2}, command:");
    assert_eq!(tenants.apply(ADA, &secret).0, 200);
    let one = "/v1/namespaces/default/gangs/secret";
    let logs = format!("{one}/logs");
    tenants.up.until("it has logs", |_| {
        tenants.ask(ADA, "GET", &logs, "").1.contains("hunter2").then_some(())
    });
    for path in [one, "/v1/gangs", "/v1/events?after=0&follow=false", "/v1/gangs?user=ada"] {
        // Events before the first that the server remembers are a gap: reading begins a few events back.
        let path = match path.contains("after=0") {
            true => {
                let newest = tenants.get(ROOT, "/v1/queues")["newest"].as_u64().expect("a number");
                format!("/v1/events?after={}&follow=false", newest.saturating_sub(3))
            }
            false => path.to_owned(),
        };
        for stranger in [EVE, BOB] {
            let (code, body) = tenants.ask(stranger, "GET", &path, "");
            assert_eq!(code, 200, "{body}");
            assert!(!body.contains("hunter2"), "{path}: {body}");
        }
    }
    let events = |token: &str| {
        let newest = tenants.get(ROOT, "/v1/queues")["newest"].as_u64().expect("a number");
        tenants.ask(token, "GET", &format!("/v1/events?after={}&follow=false", newest - 8), "").1
    };
    assert!(events(ADA).contains("hunter2") && !events(EVE).contains("hunter2"));
    let (_, shown) = tenants.ask(EVE, "GET", one, "");
    assert!(shown.contains("\"KEY\":\"(hidden)\""), "{shown}");
    for owner in [ADA, ROOT] {
        assert!(tenants.ask(owner, "GET", one, "").1.contains("hunter2"));
        assert_eq!(tenants.ask(owner, "GET", &logs, "").0, 200);
    }
    for stranger in [EVE, BOB] {
        let (code, body) = tenants.ask(stranger, "GET", &logs, "");
        assert_eq!(code, 403, "{body}");
    }
}

#[test]
fn slow_manifests_delay_no_other_request() {
    let tenants = Tenants::with("hostile-reading", &["--no-local"]);
    // More values than a viewer may send; and as many as are permitted, in as many documents as possible.
    let large = format!("a: [{}]\n", "{a: b},".repeat(270_000));
    let slow = "--- {a: b}\n".repeat(16_000);
    assert_eq!(tenants.announce(EVE, "/v1/what-if", 4_200_000), "413");
    let (address, bearer) = (tenants.up.address().to_owned(), format!("Bearer {EVE}"));
    let asks: Vec<_> = [large, slow.clone(), slow]
        .into_iter()
        .map(|body| {
            let (address, bearer) = (address.clone(), bearer.clone());
            std::thread::spawn(move || {
                let headers = [("authorization", bearer.as_str())];
                ask(&address, "POST", "/v1/what-if", &headers, &body).map(|(code, _)| code)
            })
        })
        .collect();
    let mut slowest = Duration::ZERO;
    while asks.iter().any(|one| !one.is_finished()) {
        let began = Instant::now();
        assert_eq!(ask(tenants.up.address(), "GET", "/healthz", &[], "").expect("it lives").0, 200);
        slowest = slowest.max(began.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(slowest < Duration::from_secs(2), "health took {slowest:?}");
    for one in asks {
        let code = one.join().expect("asked").expect("an answer");
        assert!(matches!(code, 413 | 422 | 429 | 503), "{code}");
    }
}
