#!/bin/sh
# Fuzzes the HTTP API of a real control plane: `muster up` in a directory of its own, with a queue and a gang that runs.
# EXAMPLES is how many requests are made up for each operation.
set -eu
cd "$(dirname "$0")/../../../.."
cargo build --quiet --package muster-cli
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
data=$(mktemp -d)
export TOKEN=token-of-the-fuzzer
echo "tokens: [{name: fuzzer, token: $TOKEN, role: admin}]" > "$data/tokens.yaml"
chmod 600 "$data/tokens.yaml"
cat > "$data/gang.yaml" <<'GANG'
kind: Queue
metadata: {name: research}
spec: {}
---
kind: Gang
metadata: {name: a, namespace: research}
spec: {queue: research, roles: [{name: w, min: 1, run: {command: [sleep, "3600"]}}]}
GANG
"$target/debug/muster" up --listen 127.0.0.1:0 --data "$data/up" --allow-root --tokens "$data/tokens.yaml" "$data/gang.yaml" \
    > "$data/up.log" 2>&1 &
server=$!
# Members end with their keepers, and keepers write down who they are. A number may be somebody else's by now.
end_all() {
    kill $server
    wait $server || true
    for pid in $(sed -n 's/^{"begun":.*"pid":\([0-9]*\).*/\1/p' "$data"/up/runs/*/journal.jsonl); do
        if tr '\0' ' ' < "/proc/$pid/cmdline" | grep -q "keep $data/"; then kill -9 "$pid"; fi
    done 2> /dev/null
    rm -rf "$data"
}
trap end_all EXIT
while [ ! -s "$data/up/server.json" ]; do sleep 0.1; done
URL=$(sed 's/.*"url":"\([^"]*\)".*/\1/' "$data/up/server.json")
export URL
sh crates/server/tests/fuzz/run.sh "$@"
if grep -q "panicked" "$data/up.log"; then
    cat "$data/up.log"
    exit 1
fi
