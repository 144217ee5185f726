//! Free ports.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// As many free loopback ports, all different.
///
/// They are free now and may be taken before a program opens them, as the source port of a connection. The caller
/// tries again then.
pub(crate) fn free<const N: usize>() -> io::Result<[u16; N]> {
    // Held together, so that the system cannot return one twice.
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}
