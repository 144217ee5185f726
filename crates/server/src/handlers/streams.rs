//! Common parts of streams: each is counted, holds a permit, and ends with the server.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use futures::stream::unfold;

use crate::config::Server;
use crate::limits::concurrency::StreamPermit;
use crate::routing::operation::Stream;

/// An open stream; counted while this value lives.
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

/// The source of a stream's parts. Nothing is read ahead: a part is made when the client has taken the previous one, so
/// a client that does not read costs one part and its socket buffers.
pub(crate) trait Source: Send + 'static {
    /// The next part; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// A response body that is sent part by part.
pub(crate) fn body(source: impl Source) -> Body {
    Body::from_stream(unfold(source, async |mut source| {
        let part = source.next().await?;
        Some((Ok::<_, Infallible>(part), source))
    }))
}
