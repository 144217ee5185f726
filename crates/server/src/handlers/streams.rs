//! What all streams have in common: they are counted, they have a seat, and they end with the server.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use futures::stream::unfold;

use crate::config::Server;
use crate::limits::concurrency::StreamPermit;
use crate::routing::operation::Stream;

/// One open stream. It is counted as long as this lives.
pub(crate) struct Open {
    server: Arc<Server>,
    of: Stream,
    _seat: Arc<StreamPermit>,
}

impl Open {
    pub(crate) fn new(server: Arc<Server>, of: Stream, permit: Arc<StreamPermit>) -> Self {
        let open = Self { server, of, _seat: permit };
        open.count().fetch_add(1, Ordering::Relaxed);
        open
    }

    fn count(&self) -> &AtomicUsize {
        match self.of {
            Stream::Events => &self.server.metrics.events,
            Stream::Logs => &self.server.metrics.logs,
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.count().fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where the parts of a stream come from. Nothing is read ahead: a part is made when the client has taken the one before,
/// so a client that does not read costs one part and its socket's buffers.
pub(crate) trait Source: Send + 'static {
    /// The next part; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// The body of an answer that comes part by part.
pub(crate) fn body(source: impl Source) -> Body {
    Body::from_stream(unfold(source, async |mut source| {
        let part = source.next().await?;
        Some((Ok::<_, Infallible>(part), source))
    }))
}
