//! Limits on sizes, durations and counts.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Events, Started, gang, start, tokens};

/// The response to raw bytes.
async fn raw(server: &Started, bytes: &str) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn oversized_body_is_refused_with_and_without_content_length() {
    let server = start(|config| config.limits.body_bytes = 1000).await;
    let long = format!("# {}\n", "x".repeat(1000));
    assert_eq!(server.apply(&long).await.code(), "tooLarge");
    let head = "POST /v1/apply HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n3eb\r\n{long}\r\n0\r\n\r\n");
    let answered = raw(&server, &chunked).await;
    assert!(answered.starts_with("HTTP/1.1 413"), "{answered}");
    assert_eq!(server.apply(&gang("b")).await.status, 200);
}

#[tokio::test]
async fn client_that_is_still_sending_can_read_the_refusal() {
    let server = start(|config| config.limits.body_bytes = 1000).await;
    // More than the buffers of both sockets hold.
    let long = "x".repeat(12 << 20);
    let length = long.len();
    for end in ["", "connection: close\r\n"] {
        let head = format!("POST /v1/apply HTTP/1.1\r\nhost: localhost\r\n{end}");
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let request = format!("{head}content-length: {length}\r\n\r\n{long}");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 413");
    }
}

#[tokio::test]
async fn total_size_of_bodies_is_limited() {
    let server = start(|config| config.limits.bodies_bytes = 10 << 10).await;
    let answered = server.apply(&format!("# {}\n", "x".repeat(20 << 10))).await;
    assert_eq!((&*answered.code(), answered.header("retry-after")), ("unavailable", "1"));
}

#[tokio::test]
async fn missing_request_body_times_out() {
    let server = start(|config| config.limits.request_time = Duration::from_millis(50)).await;
    let head = "POST /v1/apply HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 9\r\n\r\nk";
    let answered = raw(&server, head).await;
    assert!(answered.starts_with("HTTP/1.1 408") && answered.contains("tooSlow"), "{answered}");
}

#[tokio::test]
async fn missing_request_head_times_out() {
    let server = start(|config| config.limits.head_time = Duration::from_millis(50)).await;
    let answered = raw(&server, "GET /healthz HTTP/1.1\r\nhost: loc").await;
    assert!(!answered.contains("200 OK"), "{answered}");
}

#[tokio::test]
async fn unresponsive_host_times_out() {
    let server = start(|config| config.limits.request_time = Duration::from_millis(50)).await;
    let answered = server.apply(&gang("slow")).await;
    assert_eq!((answered.status, &*answered.code()), (503, "unavailable"));
    // Streams are exempt from the request timeout.
    let mut events = Events::open(server.ask("GET /v1/events")).await;
    tokio::time::sleep(Duration::from_millis(120)).await;
    server.host.say("research/a", "still here");
    assert!(events.next().await.unwrap().data.contains("still here"));
}

#[tokio::test]
async fn requests_beyond_the_limit_are_refused_until_there_is_room() {
    let server = start(|config| config.limits.requests = 1).await;
    let slow = tokio::spawn(server.ask("POST /v1/apply").body("text/yaml", gang("slow")).send());
    while server.host.asked.load(std::sync::atomic::Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let answered = server.get("/v1/gangs").await;
    assert_eq!((&*answered.code(), answered.header("retry-after")), ("unavailable", "1"));
    server.host.go_on.notify_one();
    assert_eq!(slow.await.unwrap().status, 200);
    assert_eq!(server.get("/v1/gangs").await.status, 200);
}

#[tokio::test]
async fn streams_are_limited_per_caller_and_in_total() {
    let limited = |config: &mut muster_server::Config| {
        config.tokens = tokens();
        (config.limits.streams, config.limits.streams_each) = (3, 2);
    };
    let server = start(limited).await;
    let open = |token: &str| server.ask("GET /v1/events").token(token);
    let first = Events::open(open("token-of-vera-viewer")).await;
    let _second = Events::open(open("token-of-vera-viewer")).await;
    let answered = open("token-of-vera-viewer").send().await;
    assert_eq!((answered.status, answered.header("retry-after")), (429, "1"));
    let _third = Events::open(open("token-of-adam-admin")).await;
    assert_eq!(open("token-of-adam-admin").send().await.code(), "unavailable");
    drop(first);
    // A closed stream is noticed at the next write.
    loop {
        server.host.say("research/a", "ping");
        let again = open("token-of-vera-viewer").open().await;
        if again.status() == 200 {
            break;
        }
    }
}
