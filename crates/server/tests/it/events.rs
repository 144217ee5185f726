//! The change feed: positions, filters, heartbeats and slow clients.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use crate::client::{Event, Events, Started, start};

async fn follow(server: &Started, query: &str) -> Events {
    let mut events = Events::open(server.ask(&format!("GET /v1/events{query}"))).await;
    // Returns once the server has registered the reader.
    events.block().await.unwrap();
    events
}

fn seq(event: &Event) -> u64 {
    let data: Value = serde_json::from_str(&event.data).unwrap();
    assert_eq!(data["seq"].to_string(), event.id);
    data["seq"].as_u64().unwrap()
}

#[tokio::test]
async fn reconnected_reader_continues_at_its_position() {
    let server = start(|_| {}).await;
    let mut first = follow(&server, "").await;
    for round in 0..10 {
        server.host.say("research/a", &format!("{round}"));
    }
    let mut last = first.next().await.unwrap();
    for _ in 0..3 {
        last = first.next().await.unwrap();
    }
    drop(first);
    let again = server.ask("GET /v1/events?after=1").header("last-event-id", &last.id);
    let mut again = Events::open(again).await;
    for round in 4..10 {
        let event = again.next().await.unwrap();
        assert!(event.data.contains(&format!("\"message\":\"{round}\"")), "{event:?}");
        assert_eq!(event.event, "said");
    }
    let after = follow(&server, &format!("?after={}&follow=false", last.id)).await.next().await;
    assert_eq!(seq(&after.unwrap()), seq(&last) + 1);
}

#[tokio::test]
async fn position_too_old_or_in_the_future_yields_a_gap() {
    let server = start(|_| {}).await;
    let newest = server.get("/v1/gangs").await.json()["newest"].as_u64().unwrap();
    for after in [0, 99, 1_000_000] {
        let mut events = follow(&server, &format!("?after={after}")).await;
        let gap = events.next().await.unwrap();
        assert_eq!((&*gap.event, seq(&gap)), ("gap", newest), "after {after}");
    }
    let mut events = follow(&server, "?after=0").await;
    events.next().await.unwrap();
    server.host.say("research/a", "and on");
    assert_eq!(seq(&events.next().await.unwrap()), newest + 1);
}

#[tokio::test]
async fn events_are_filtered() {
    let server = start(|_| {}).await;
    let after = server.get("/v1/gangs").await.json()["newest"].as_u64().unwrap();
    server.host.gang("n", "x", "sales", "Waiting");
    server.host.gang("n", "y", "research", "Waiting");
    server.host.say("n/x", "about x");
    server.host.say("research/a", "about a");
    let gone = "node-1".into();
    server.host.board.remove(crate::host::AT, muster_server::Kind::Node, &gone);
    for (query, wanted) in [
        ("", vec![1, 2, 3, 4, 5]),
        ("&kind=Node", vec![5]),
        ("&namespace=n", vec![1, 2, 3]),
        ("&name=a", vec![4]),
        ("&queue=sales", vec![1, 3]),
        ("&queue=research&namespace=n", vec![2]),
        ("&kind=Pool", vec![]),
    ] {
        let mut events = follow(&server, &format!("?follow=false&after={after}{query}")).await;
        let mut found = Vec::new();
        while let Some(event) = events.next().await {
            found.push(seq(&event) - after);
        }
        assert_eq!(found, wanted, "{query}");
    }
}

#[tokio::test]
async fn idle_stream_sends_heartbeats_with_its_position() {
    let server = start(|config| config.limits.heartbeat = Duration::from_millis(20)).await;
    let mut events = follow(&server, "?kind=Pool").await;
    server.host.say("research/a", "not about a pool");
    let newest = server.get("/v1/gangs").await.json()["newest"].to_string();
    loop {
        let sign = events.block().await.unwrap();
        assert_eq!(sign.data, "");
        if sign.id == newest {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_stalled_reader_of_fifty_delays_no_other() {
    let server = start(|_| {}).await;
    let mut silent = Events::open(server.ask("GET /v1/events")).await;
    let mut readers = Vec::new();
    for _ in 0..49 {
        readers.push(follow(&server, "?name=a").await);
    }
    while !server.get("/metrics").await.text.contains("muster_http_streams{of=\"events\"} 50") {
        tokio::task::yield_now().await;
    }
    // More than the sockets' buffers hold, and more than the board keeps; every hundredth is for the readers.
    let (rounds, long) = (200, "x".repeat(1000));
    let writing = server.host.clone();
    let written = tokio::spawn(async move {
        for round in 0..rounds {
            writing.say("research/a", &round.to_string());
            for _ in 0..99 {
                writing.say("research/noise", &long);
                tokio::task::yield_now().await;
            }
        }
        writing.say("research/a", "done");
    });
    let each = readers.into_iter().map(|mut reader| async move {
        let (mut due, mut gaps) = (0, 0);
        loop {
            let event = reader.next().await.unwrap();
            let data: Value = serde_json::from_str(&event.data).unwrap();
            match data["message"].as_str() {
                Some("done") => return (due, gaps),
                Some(round) => {
                    let round: usize = round.parse().unwrap();
                    assert!(round == due || gaps > 0, "{due} is missing");
                    due = round + 1;
                }
                None => gaps += 1,
            }
        }
    });
    let all = timeout(Duration::from_secs(60), futures::future::join_all(each)).await.unwrap();
    written.await.unwrap();
    for (due, gaps) in all {
        assert!(due == rounds || gaps > 0);
    }
    // The slow client reads at last: first what its socket held, then the gap, then new entries.
    while silent.next().await.unwrap().event != "gap" {}
    server.host.say("research/a", "new");
    assert!(silent.next().await.unwrap().data.contains("\"message\":\"new\""));
}
