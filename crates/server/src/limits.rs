//! How much is too much.

use std::time::Duration;

/// Bounds that keep one reader, one caller or one mistake from taking the server away from the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The largest body, in bytes.
    pub body_bytes: usize,
    /// All bodies that are held at once, in bytes.
    pub bodies_bytes: usize,
    /// Requests that are answered at once, without streams.
    pub requests: usize,
    /// Streams that are open at once.
    pub streams: usize,
    /// Streams that one caller has open at once.
    pub streams_each: usize,
    /// Connections that are open at once. More wait to be taken.
    pub connections: usize,
    /// The longest a request takes, from its head to the head of its answer.
    pub request_time: Duration,
    /// The longest a client takes for the head of a request, or between two of them.
    pub head_time: Duration,
    /// How often a silent stream says that it is still there.
    pub heartbeat: Duration,
    /// How long requests may go on once the server is asked to end.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: muster_api::MAX_FILE_BYTES as usize,
            // A dozen of the largest, or thousands of ordinary ones.
            bodies_bytes: 256 << 20,
            requests: 512,
            streams: 1024,
            streams_each: 256,
            connections: 4096,
            request_time: Duration::from_secs(30),
            head_time: Duration::from_secs(30),
            heartbeat: Duration::from_secs(15),
            grace: Duration::from_secs(10),
        }
    }
}
