//! A cluster with all parts, for manual tests: `cargo run -p muster-testkit --features cluster --example cluster`. It
//! lives until its input ends (Enter or Ctrl-D).

use std::time::Instant;

use muster_testkit::cluster::{Cluster, Role, Setup};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let began = Instant::now();
    let cluster = Cluster::start(&Setup::bare().with_all()).await;
    let cluster = cluster.unwrap_or_else(|error| panic!("{error}"));
    println!("ready after {:.1} s at {}", began.elapsed().as_secs_f64(), cluster.server());
    for (tool, process) in cluster.processes() {
        println!("  {process:>7} {tool}");
    }
    println!("export KUBECONFIG={}", cluster.kubeconfig(Role::Admin).display());
    println!("Enter ends it");
    let _ = std::io::stdin().read_line(&mut String::new());
}
