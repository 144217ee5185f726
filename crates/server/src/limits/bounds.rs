//! How much is too much.

use std::time::Duration;

/// Bounds that keep one reader, one caller or one mistake from taking the server away from the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The largest body of an admin, in bytes.
    pub body_bytes: usize,
    /// The largest body of any other caller, in bytes: what is read of it takes many times as much memory.
    pub body_bytes_user: usize,
    /// All bodies that are held at once, in bytes.
    pub bodies_bytes: usize,
    /// Bodies that are held at once for one caller that is no admin, in bytes.
    pub bodies_bytes_each: usize,
    /// Requests that are answered at once, without streams.
    pub requests: usize,
    /// Requests that are answered at once for one caller that is no admin.
    pub requests_each: usize,
    /// Requests that are answered at once for one admin.
    pub requests_admin: usize,
    /// Changes that one caller that is no admin makes in a second, on average; so many times as many at once.
    pub changes_per_second: u32,
    /// Changes that may come at once after a pause.
    pub changes_burst: u32,
    /// Streams that are open at once.
    pub streams: usize,
    /// Streams that one caller has open at once.
    pub streams_each: usize,
    /// Logs that are followed at once.
    pub follows: usize,
    /// Logs that one caller follows at once.
    pub follows_each: usize,
    /// Connections that are open at once. More wait to be taken.
    pub connections: usize,
    /// Connections that have shown no credential yet, at once. The oldest of them is cut for one more.
    pub connections_unauthenticated: usize,
    /// Connections from one address of another machine, at once.
    pub connections_each: usize,
    /// The longest a request takes, from its head to the head of its answer.
    pub request_time: Duration,
    /// The longest a client takes for the head of its first request.
    pub first_head_time: Duration,
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
            // Thousands of ordinary gangs; an object has a mebibyte at most.
            body_bytes_user: 2 << 20,
            // A few of the largest, or thousands of ordinary ones.
            bodies_bytes: 64 << 20,
            bodies_bytes_each: 4 << 20,
            requests: 512,
            requests_each: 32,
            requests_admin: 256,
            changes_per_second: 50,
            changes_burst: 500,
            streams: 1024,
            streams_each: 64,
            follows: 128,
            follows_each: 16,
            connections: 4096,
            connections_unauthenticated: 256,
            connections_each: 256,
            request_time: Duration::from_secs(30),
            first_head_time: Duration::from_secs(5),
            head_time: Duration::from_secs(30),
            heartbeat: Duration::from_secs(15),
            grace: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// With no more connections than there are file handles for, and some left for everything else the process opens.
    #[must_use]
    pub fn within_files(self, files: usize, reserve: usize) -> Self {
        let connections = self.connections.min(files.saturating_sub(reserve).max(16));
        let connections_unauthenticated = self.connections_unauthenticated.min(connections / 2);
        Self { connections, connections_unauthenticated, ..self }
    }
}
