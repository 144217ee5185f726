//! Drains the rest of a rejected body for a while.
//!
//! A client that is still sending when its connection is closed gets a broken pipe instead of the response with the
//! reason.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// How long to drain, at most.
const TIME: Duration = Duration::from_secs(5);
/// How long a client may pause meanwhile.
const SILENCE: Duration = Duration::from_millis(500);
/// How many bytes to drain, at most.
const BYTES: usize = 16 << 20;

/// A body whose rest is drained when it is dropped early.
#[derive(Debug)]
pub(crate) struct DrainOnDrop(Option<Body>);

impl DrainOnDrop {
    pub(crate) fn wrap(body: Body) -> Body {
        if body.is_end_stream() { body } else { Body::new(Self(Some(body))) }
    }
}

impl HttpBody for DrainOnDrop {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.0 = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for DrainOnDrop {
    fn drop(&mut self) {
        let unread = self.0.take().filter(|body| !body.is_end_stream());
        if let (Some(body), Ok(runtime)) = (unread, Handle::try_current()) {
            runtime.spawn(timeout(TIME, drain(body)));
        }
    }
}

async fn drain(mut body: Body) {
    let mut bytes = 0;
    while let Ok(Some(Ok(frame))) = timeout(SILENCE, body.frame()).await {
        bytes += frame.data_ref().map_or(0, Bytes::len);
        if bytes > BYTES {
            return;
        }
    }
}
