//! The keeper's end of the socket: sends all records, new records and heartbeats; receives orders.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{broadcast, mpsc};

use crate::keeper::journal::Record;
use crate::keeper::run::keeper::BEAT;
use crate::keeper::socket::client::Order;

/// Accepts connections of control planes.
pub(crate) async fn listen(
    listener: UnixListener,
    said: Arc<Mutex<Vec<Record>>>,
    news: broadcast::Sender<Record>,
    orders: mpsc::Sender<Order>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        // Records from here on come through the channel. A record in both is sent twice, which is harmless.
        let following = news.subscribe();
        let known = said.lock().map(|said| said.clone()).unwrap_or_default();
        tokio::spawn(serve_connection(stream, known, following, orders.clone()));
    }
}

async fn serve_connection(
    stream: UnixStream,
    known: Vec<Record>,
    mut news: broadcast::Receiver<Record>,
    orders: mpsc::Sender<Order>,
) {
    let (read, mut write) = stream.into_split();
    let receives = async {
        let mut lines = BufReader::new(read).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if let Ok(order) = serde_json::from_str(&line)
                && orders.send(order).await.is_err()
            {
                return;
            }
        }
    };
    let sends = async {
        for record in &known {
            send(&mut write, record).await?;
        }
        let mut beat = tokio::time::interval(BEAT);
        loop {
            tokio::select! {
                biased;
                record = news.recv() => match record {
                    Ok(record) => send(&mut write, &record).await?,
                    Err(_) => return std::io::Result::Ok(()),
                },
                _ = beat.tick() => send(&mut write, &Record::Beat).await?,
            }
        }
    };
    tokio::select! {
        () = receives => {}
        _ = sends => {}
    }
}

async fn send(write: &mut (impl AsyncWriteExt + Unpin), record: &Record) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(record).map_err(std::io::Error::other)?;
    line.push(b'\n');
    write.write_all(&line).await
}
