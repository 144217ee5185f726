#!/bin/sh
# Fuzzes the HTTP API from its own OpenAPI document, with schemathesis from PyPI.
#
#   crates/server/tests/fuzz/run.sh                                       the host of the tests, started here
#   URL=http://127.0.0.1:7480 TOKEN=... crates/server/tests/fuzz/run.sh   a server that runs already
#
# The gang GANG (a) of NAMESPACE (research) should be there. EXAMPLES (100) is how many requests are made up for each
# operation. Further arguments go to schemathesis.
set -eu
cd "$(dirname "$0")/../../../.."
root=$(pwd)
mkdir -p "${CARGO_TARGET_DIR:-target}"
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
venv=$target/schemathesis
if [ ! -x "$venv/bin/st" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet 'schemathesis==4.32.5'
fi
if [ -z "${URL:-}" ]; then
    TOKEN=token-of-the-fuzzer
    tokens=$target/fuzz-tokens.yaml
    echo "tokens: [{name: fuzzer, token: $TOKEN, role: admin}]" > "$tokens"
    chmod 600 "$tokens"
    cargo build --quiet --package muster-server --example toy
    said=$target/fuzz-address
    rm -f "$said"
    "$target/debug/examples/toy" 0 "$tokens" > "$said" 2> "$target/fuzz-server.log" &
    server=$!
    trap 'kill $server' EXIT
    while [ ! -s "$said" ]; do sleep 0.1; done
    URL=$(cat "$said")
fi
# It leaves what it found where it runs.
cd "$target"
fuzz() {
    config=$1
    shift
    "$venv/bin/st" --config-file "$root/crates/server/tests/fuzz/$config" run "$URL/openapi.json" \
        --header "Authorization: Bearer ${TOKEN:-none}" \
        --max-examples "${EXAMPLES:-100}" --continue-on-failure --request-timeout 40 "$@"
}
export NAMESPACE="${NAMESPACE:-research}" GANG="${GANG:-a}"
# Names that are made up are names of nothing: what is asked of one gang is asked of one that is there, as well.
fuzz known-gang.toml --include-path-regex '^/v1/namespaces/' --exclude-operation-id removeGang "$@"
fuzz schemathesis.toml "$@"
