//! The limits of a server.

use std::time::Duration;

/// Limits that keep one client, one caller or one bug from starving the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum body of an admin, in bytes.
    pub body_bytes: usize,
    /// Maximum body of any other caller, in bytes: its parsed form takes many times as much memory.
    pub body_bytes_user: usize,
    /// Maximum bytes of all bodies in memory.
    pub bodies_bytes: usize,
    /// Maximum bytes of bodies in memory for one caller other than an admin.
    pub bodies_bytes_each: usize,
    /// Concurrent requests, without streams.
    pub requests: usize,
    /// Concurrent requests of one caller other than an admin.
    pub requests_each: usize,
    /// Concurrent requests of one admin.
    pub requests_admin: usize,
    /// Changes per second of one caller other than an admin, on average.
    pub changes_per_second: u32,
    /// Changes that may come at once after a pause.
    pub changes_burst: u32,
    /// Concurrent streams.
    pub streams: usize,
    /// Concurrent streams of one caller.
    pub streams_each: usize,
    /// Concurrently followed logs.
    pub follows: usize,
    /// Concurrently followed logs of one caller.
    pub follows_each: usize,
    /// Concurrent connections. Further ones wait to be accepted.
    pub connections: usize,
    /// Concurrent connections that have not authenticated yet. A further one evicts the oldest of them.
    pub connections_unauthenticated: usize,
    /// Concurrent connections from one address of another machine.
    pub connections_each: usize,
    /// Maximum duration of a request, from its head to the head of its response.
    pub request_time: Duration,
    /// Maximum time for the head of a connection's first request.
    pub first_head_time: Duration,
    /// Maximum time for the head of a request, and between two requests.
    pub head_time: Duration,
    /// Heartbeat interval of idle streams.
    pub heartbeat: Duration,
    /// How long requests may continue after shutdown begins.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: muster_api::MAX_FILE_BYTES as usize,
            // Thousands of ordinary gangs; one object has a mebibyte at most.
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
    /// Lowers the number of connections to the available file descriptors, less a reserve for everything else the
    /// process opens.
    #[must_use]
    pub fn within_files(self, files: usize, reserve: usize) -> Self {
        let connections = self.connections.min(files.saturating_sub(reserve).max(16));
        let connections_unauthenticated = self.connections_unauthenticated.min(connections / 2);
        Self { connections, connections_unauthenticated, ..self }
    }
}
