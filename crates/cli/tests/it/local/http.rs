//! A minimal HTTP client for these tests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Sends a request and reads the answer; an error when the connection is closed early.
pub(super) fn ask(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let length = body.len();
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n"
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let gone = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let (head, rest) = answer.split_once("\r\n\r\n").ok_or_else(gone)?;
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(gone)?;
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let expected = head.to_ascii_lowercase().lines().find_map(|line| {
        line.strip_prefix("content-length:").and_then(|text| text.trim().parse::<usize>().ok())
    });
    if expected.is_some_and(|expected| rest.len() < expected) {
        return Err(gone());
    }
    let body = if chunked { dechunked(rest).ok_or_else(gone)? } else { rest.to_owned() };
    Ok((code, body))
}

fn dechunked(mut text: &str) -> Option<String> {
    let mut whole = String::new();
    loop {
        let (size, rest) = text.split_once("\r\n")?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole += rest.get(..size)?;
        text = rest.get(size + 2..)?;
    }
}

pub(super) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
