//! Listens on sockets, serves connections, and shuts down gracefully.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::future::select_all;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::limits::connections::{Connection, Connections};
use crate::serve::tls::{TlsError, acceptor};
use crate::{AuditLog, Config, Host, IdempotencyStore, Limits, Shutdown, router};

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It could be reached from other machines without tokens.
    #[error("{0} can be reached from other machines: give tokens, or listen on 127.0.0.1")]
    Open(SocketAddr),
    /// It has no address to listen on.
    #[error("there is no address to listen on")]
    Nowhere,
    /// The address is in use, or not an address of this machine.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// Its certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A server that has bound its addresses, and does not accept connections yet.
pub struct Bound {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    tls: Option<TlsAcceptor>,
    config: Config,
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bound").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// Binds the addresses of a server. Port 0 selects a free port.
pub async fn bind(config: Config) -> Result<Bound, ServeError> {
    if config.listen.is_empty() {
        return Err(ServeError::Nowhere);
    }
    let open = config.listen.iter().find(|address| !address.ip().is_loopback());
    match open {
        Some(address) if config.tokens.is_none() => return Err(ServeError::Open(*address)),
        Some(address) if config.tls.is_none() => {
            tracing::warn!(%address, "tokens are sent in the clear: there is no certificate");
        }
        _ => {}
    }
    let tls = config.tls.as_ref().map(acceptor).transpose()?;
    let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
    for address in &config.listen {
        let wrong = |error| ServeError::Listen(*address, error);
        let listener = TcpListener::bind(address).await.map_err(wrong)?;
        addresses.push(listener.local_addr().map_err(wrong)?);
        listeners.push(listener);
    }
    Ok(Bound { listeners, addresses, tls, config })
}

/// Serves a host until shutdown.
pub async fn serve(
    host: Arc<dyn Host>,
    config: Config,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    bind(config).await?.serve(host, shutdown).await;
    Ok(())
}

impl Bound {
    /// The bound addresses.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Stores answers under idempotency keys there. A host that is started after the addresses are bound can be the
    /// store.
    #[must_use]
    pub fn with_idempotency_store(mut self, store: Arc<dyn IdempotencyStore>) -> Self {
        self.config.idempotency_store = store;
        self
    }

    /// Writes audit records there.
    #[must_use]
    pub fn with_audit(mut self, audit: Arc<AuditLog>) -> Self {
        self.config.audit = Some(audit);
        self
    }

    /// Serves until shutdown. Then no connection is accepted, streams end, requests in flight get a grace period, and
    /// the rest is cut off.
    pub async fn serve(self, host: Arc<dyn Host>, shutdown: impl Future<Output = ()>) {
        let router = router(host, &self.config);
        let Self { listeners, addresses: _, tls, config } = self;
        let graceful = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        let room = Arc::new(Semaphore::new(config.limits.connections));
        let known = Connections::new(&config.limits);
        let (limits, ending) = (config.limits.clone(), config.shutdown.clone());
        let each = Each { router, tls, limits, shutdown: ending };
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                (stream, from, held) = next(&listeners, &room) => {
                    // A connection from an address with too many is dropped.
                    if let Some(one) = known.add(from.ip()) {
                        let number = one.number();
                        let watcher = graceful.watcher();
                        let served = each.clone().connection(stream, one, watcher, held);
                        known.set_abort(number, connections.spawn(served));
                    }
                }
                Some(_) = connections.join_next() => {}
            }
        }
        drop(listeners);
        config.shutdown.begin();
        if timeout(config.limits.grace, graceful.shutdown()).await.is_err() {
            tracing::warn!("connections that did not end are cut off");
        }
        connections.shutdown().await;
    }
}

/// The next connection, once there is a permit for it.
async fn next(
    listeners: &[TcpListener],
    room: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let held = room.clone().acquire_owned().await.ok();
    loop {
        let accepts = listeners.iter().map(|listener| Box::pin(listener.accept()));
        match select_all(accepts).await.0 {
            Ok((stream, from)) => return (stream, from, held),
            Err(error) => {
                // Most likely the process is out of file descriptors; a closed connection frees one.
                tracing::warn!(%error, "a connection cannot be taken");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// What every connection needs.
#[derive(Clone)]
struct Each {
    router: Router,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    shutdown: Shutdown,
}

impl Each {
    async fn connection(
        self,
        stream: TcpStream,
        one: Arc<Connection>,
        watcher: Watcher,
        _held: Option<OwnedSemaphorePermit>,
    ) {
        // Events are small and should not wait for each other.
        let _ = stream.set_nodelay(true);
        match self.tls.clone() {
            None => self.speak(stream, one, watcher).await,
            Some(tls) => {
                let mut told = self.shutdown.subscribe();
                let accepted = tokio::select! {
                    () = told.wait() => return,
                    accepted = timeout(self.limits.first_head_time, tls.accept(stream)) => accepted,
                };
                match accepted {
                    Ok(Ok(stream)) => self.speak(stream, one, watcher).await,
                    Ok(Err(error)) => tracing::debug!(%error, "no TLS with a client"),
                    Err(_) => tracing::debug!("a client took too long for TLS"),
                }
            }
        }
    }

    async fn speak(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        one: Arc<Connection>,
        watcher: Watcher,
    ) {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.limits.head_time);
        let service =
            WithConnection { inner: TowerToHyperService::new(self.router), one: one.clone() };
        let connection = watcher.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::pin!(connection);
        let first = timeout(self.limits.first_head_time, &mut connection).await;
        let ended = match first {
            Ok(ended) => ended,
            // No request arrived: some clients only connect to occupy a place.
            Err(_) if !one.is_active() => return,
            Err(_) => connection.await,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        }
    }
}

/// Attaches the connection to each of its requests.
struct WithConnection {
    inner: TowerToHyperService<Router>,
    one: Arc<Connection>,
}

impl hyper::service::Service<hyper::Request<hyper::body::Incoming>> for WithConnection {
    type Response = axum::response::Response;
    type Error = std::convert::Infallible;
    type Future = <TowerToHyperService<Router> as hyper::service::Service<
        hyper::Request<hyper::body::Incoming>,
    >>::Future;

    fn call(&self, mut request: hyper::Request<hyper::body::Incoming>) -> Self::Future {
        self.one.mark_active();
        request.extensions_mut().insert(self.one.clone());
        self.inner.call(request)
    }
}
