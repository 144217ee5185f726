//! Serves the toy host of the tests, which stores objects and runs nothing, to try the API by hand or with a fuzzer.
//!
//! `cargo run -p muster-server --example toy -- PORT [TOKENS]`

use std::net::Ipv4Addr;
use std::path::Path;

use muster_server::{Config, PORT, Tokens, bind};

#[path = "../tests/it/host.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod host;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().map_or(Ok(PORT), |port| port.parse())?;
    let tokens = arguments.next().map_or(Ok(Tokens::none()), |file| Tokens::read(Path::new(&file)));
    let listen = vec![(Ipv4Addr::LOCALHOST, port).into()];
    let bound = bind(Config { listen, tokens: tokens?, ..Config::default() }).await?;
    println!("http://{}", bound.addresses()[0]);
    bound.serve(host::Toy::new(), std::future::pending()).await;
    Ok(())
}
