//! The client of the leader: its connections send nothing once the Lease could have expired.
//!
//! A check before a request is not enough: the process may be paused between the check and the write, or the machine
//! suspended. So the check is made where bytes are passed to the kernel. The kernel drops bytes that it cannot deliver
//! after the TCP user timeout, which is the margin between the end of the own term and the moment at which another replica
//! may acquire the Lease. A request of which only a part was sent has no effect: the server waits for the rest of its body
//! and then gives up.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::Client;
use kube::client::ConfigExt;
use tower::{BoxError, Service, ServiceBuilder};

use crate::lease::leadership::Leadership;

/// A request is retried on another connection when connecting takes this long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client that sends only while this process leads.
///
/// # Errors
/// When the cluster's certificates or credentials cannot be read.
pub(crate) fn client(
    cluster: &kube::Config,
    leadership: &Leadership,
    tcp_user_timeout: Duration,
) -> kube::Result<Client> {
    let mut sockets = HttpConnector::new();
    sockets.enforce_http(false);
    sockets.set_nodelay(true);
    sockets.set_connect_timeout(Some(CONNECT_TIMEOUT));
    sockets.set_tcp_user_timeout(Some(tcp_user_timeout));
    let leader_only = LeaderOnlyConnector { sockets, leadership: leadership.clone() };
    let connector = cluster.rustls_https_connector_with_connector(leader_only)?;
    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(cluster.base_uri_layer())
        .option_layer(cluster.auth_layer()?)
        .layer(cluster.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, cluster.default_namespace.clone()))
}

/// Opens [`LeaderOnly`] connections.
#[derive(Clone)]
struct LeaderOnlyConnector {
    sockets: HttpConnector,
    leadership: Leadership,
}

type Socket = <HttpConnector as Service<http::Uri>>::Response;

impl Service<http::Uri> for LeaderOnlyConnector {
    type Response = LeaderOnly<Socket>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.sockets.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: http::Uri) -> Self::Future {
        let (opening, leadership) = (self.sockets.call(to), self.leadership.clone());
        Box::pin(async move { Ok(LeaderOnly { socket: opening.await?, leadership }) })
    }
}

/// A connection that refuses to send once the Lease could have expired. Answers are still read.
struct LeaderOnly<S> {
    socket: S,
    leadership: Leadership,
}

impl<S> LeaderOnly<S> {
    fn check(&self) -> io::Result<()> {
        match self.leadership.is_held() {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::BrokenPipe, "no longer the leader")),
        }
    }
}

impl<S: Read + Unpin> Read for LeaderOnly<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin> Write for LeaderOnly<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.socket).poll_write_vectored(context, parts)
    }
}

impl<S: Connection> Connection for LeaderOnly<S> {
    fn connected(&self) -> Connected {
        self.socket.connected()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, PostParams};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use crate::api::leader_client::*;
    use crate::lease::boot_clock::BootTime;
    use crate::lease::leadership::Term;

    const ANSWER: &[u8] =
        b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

    /// Answers every request on one connection and counts the bytes it received.
    async fn count(listener: TcpListener, bytes: tokio::sync::watch::Sender<usize>) {
        let (mut socket, _) = listener.accept().await.expect("a connection");
        let mut buffer = vec![0; 65_536];
        while let Ok(read @ 1..) = socket.read(&mut buffer).await {
            bytes.send_modify(|all| *all += read);
            let _ = socket.write_all(ANSWER).await;
        }
    }

    #[tokio::test]
    async fn open_connection_sends_nothing_after_the_term_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let server = format!("http://{}", listener.local_addr().expect("an address"));
        let (bytes, counted) = tokio::sync::watch::channel(0);
        tokio::spawn(count(listener, bytes));
        let term = |until| Term { until, stalled: false };
        let later = BootTime::now().after(Duration::from_secs(60));
        let (sender, leadership) = Leadership::until(term(Some(later)));
        let cluster = kube::Config::new(server.parse().expect("an address"));
        let client = client(&cluster, &leadership, Duration::from_secs(3)).expect("a client");
        let objects: Api<ConfigMap> = Api::namespaced(client, "default");
        let create =
            || async { objects.create(&PostParams::default(), &ConfigMap::default()).await };
        create().await.expect("the leader writes");
        let sent = *counted.borrow();
        assert!(sent > 0);
        // The term has ended by the clock, and nothing else has changed.
        sender.send_replace(term(Some(BootTime::now())));
        create().await.expect_err("only the leader writes");
        assert_eq!(*counted.borrow(), sent);
    }
}
