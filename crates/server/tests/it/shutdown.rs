//! Which addresses a server binds, and how it shuts down.

use std::time::Duration;

use muster_server::{Config, ServeError, Tls, bind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{Events, gang, start, tokens};

#[tokio::test]
async fn shutdown_ends_streams_and_waits_for_requests() {
    let server = start(|_| {}).await;
    server.host.gang("research", "endless", "research", "Running");
    let mut events = Events::open(server.ask("GET /v1/events")).await;
    events.block().await.unwrap();
    let path = "GET /v1/namespaces/research/gangs/endless/logs?follow=true";
    let logs = tokio::spawn(server.ask(path).send());
    let slow = tokio::spawn(server.ask("POST /v1/apply").body("text/yaml", gang("slow")).send());
    let wanted = "muster_http_streams{of=\"logs\"} 1";
    while server.host.asked.load(std::sync::atomic::Ordering::SeqCst) == 0
        || !server.get("/metrics").await.text.contains(wanted)
    {
        tokio::task::yield_now().await;
    }
    let host = server.host.clone();
    let ended = tokio::spawn(server.end());
    // After the entries that were already sent, the stream ends.
    while events.next().await.is_some() {}
    assert_eq!(logs.await.unwrap().text.lines().count(), 2);
    assert!(!ended.is_finished(), "a request is still under way");
    host.go_on.notify_waiters();
    assert_eq!(slow.await.unwrap().status, 200);
    timeout(Duration::from_secs(5), ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn shutdown_does_not_wait_for_idle_connections() {
    let server = start(|config| config.limits.grace = Duration::from_secs(60)).await;
    let silent = TcpStream::connect(server.address).await.unwrap();
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(idle.read(&mut [0; 1000]).await.unwrap() > 0);
    timeout(Duration::from_secs(5), server.end()).await.unwrap();
    drop(silent);
}

#[tokio::test]
async fn hanging_request_is_cut_off_after_the_grace_period() {
    let server = start(|config| config.limits.grace = Duration::from_millis(50)).await;
    let slow = tokio::spawn(server.ask("POST /v1/apply").body("text/yaml", gang("slow")).send());
    while server.host.asked.load(std::sync::atomic::Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    timeout(Duration::from_secs(5), server.end()).await.unwrap();
    assert!(slow.await.is_err(), "there is no answer");
}

#[tokio::test]
async fn server_without_tokens_binds_only_loopback() {
    let everywhere = || Config { listen: vec![([0, 0, 0, 0], 0).into()], ..Config::default() };
    let refused = bind(everywhere()).await.unwrap_err();
    assert!(matches!(refused, ServeError::Open(_)));
    assert!(refused.to_string().contains("give tokens"), "{refused}");
    bind(Config { tokens: tokens(), ..everywhere() }).await.unwrap();
    let nowhere = bind(Config { listen: vec![], ..Config::default() }).await.unwrap_err();
    assert!(matches!(nowhere, ServeError::Nowhere));
    let taken =
        bind(Config { listen: vec![([127, 0, 0, 1], 0).into()], ..Config::default() }).await;
    let taken = taken.unwrap();
    let again = bind(Config { listen: taken.addresses().to_vec(), ..Config::default() }).await;
    assert!(matches!(again, Err(ServeError::Listen(..))));
}

mod tls {
    use std::sync::Arc;

    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::crypto::ring::default_provider;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    use super::*;

    #[tokio::test]
    async fn server_with_certificate_speaks_only_tls() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
        let tls = Tls { certificate: folder.join("cert.pem"), key: folder.join("key.pem") };
        std::fs::write(&tls.certificate, made.cert.pem()).unwrap();
        std::fs::write(&tls.key, made.signing_key.serialize_pem()).unwrap();
        let swapped = Tls { certificate: tls.key.clone(), key: tls.certificate.clone() };
        let server = start(|config| config.tls = Some(tls)).await;

        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(server.address).await.unwrap();
        let name = "localhost".try_into().unwrap();
        let mut stream = TlsConnector::from(Arc::new(client)).connect(name, stream).await.unwrap();
        let request = "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("ready\n"), "{text}");

        let mut plain = TcpStream::connect(server.address).await.unwrap();
        plain.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        let _ = plain.read_to_end(&mut bytes).await;
        assert!(!bytes.starts_with(b"HTTP"));

        let listen = vec![([127, 0, 0, 1], 0).into()];
        let wrong = bind(Config { listen, tls: Some(swapped), ..Config::default() }).await;
        assert!(matches!(wrong, Err(ServeError::Tls(_))), "{wrong:?}");
    }
}
