//! Host ports: two pods on one node cannot have the same host port and protocol on the same address, or on all
//! addresses.

use muster_api::pod::{HostPort, PodSpec};

use crate::constraints::tokens::{TOKENS_PER_NODE, TokenKind};

/// The host IP that stands for all addresses of the node.
const ALL_ADDRESSES: &str = "0.0.0.0";

/// The tokens that a pod's host ports take. A host port on all addresses takes all of the port's token; one on a single
/// address takes all of that address' token and one unit of the port's, so that the two never share a node.
pub(crate) fn tokens(spec: &PodSpec) -> Vec<(TokenKind, u64)> {
    let mut tokens = Vec::new();
    for HostPort { port, protocol, ip } in spec.host_ports() {
        let of = |ip: Option<&str>| TokenKind::HostPort {
            protocol: protocol.to_owned(),
            port,
            ip: ip.map(str::to_owned),
        };
        if ip == ALL_ADDRESSES {
            tokens.push((of(None), TOKENS_PER_NODE));
        } else {
            tokens.push((of(None), 1));
            tokens.push((of(Some(ip)), TOKENS_PER_NODE));
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use crate::constraints::host_ports::*;

    fn ports(ports: &[(u16, &str, &str)]) -> PodSpec {
        let ports: Vec<_> = ports
            .iter()
            .map(|(port, protocol, ip)| {
                json!({"hostPort": port, "protocol": protocol, "hostIP": ip})
            })
            .collect();
        PodSpec::read(&json!({"containers": [{"ports": ports}]}), "spec").expect("a spec")
    }

    #[test]
    fn two_pods_share_a_node_exactly_when_no_host_ports_conflict() {
        let all = [
            ports(&[]),
            ports(&[(80, "TCP", "")]),
            ports(&[(80, "UDP", "")]),
            ports(&[(80, "TCP", "10.0.0.1")]),
            ports(&[(80, "TCP", "10.0.0.2")]),
            ports(&[(81, "TCP", "0.0.0.0"), (80, "TCP", "10.0.0.2")]),
        ];
        for (at, a) in all.iter().enumerate() {
            for (other, b) in all.iter().enumerate() {
                let mut sums: BTreeMap<TokenKind, u64> = BTreeMap::new();
                for (kind, amount) in tokens(a).into_iter().chain(tokens(b)) {
                    *sums.entry(kind).or_default() += amount;
                }
                let fits = sums.values().all(|sum| *sum <= TOKENS_PER_NODE);
                let clash = a
                    .host_ports()
                    .iter()
                    .any(|a| b.host_ports().iter().any(|b| a.conflicts_with(b)));
                assert_eq!(fits, !clash, "{at} and {other}");
            }
        }
    }
}
