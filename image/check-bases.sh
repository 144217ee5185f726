#!/bin/sh
# Refuses base images that are named by a tag alone where RELEASE is set: a tag is another image tomorrow.
#
#   RELEASE=1 image/check-bases.sh IMAGE...
set -eu
case "${RELEASE:-0}" in 0) exit 0 ;; esac
[ $# -gt 0 ] || { echo "error: no base image is named" >&2; exit 2; }
floating=0
for image in "$@"; do
    if ! printf '%s\n' "$image" | grep -Eq '^[^@]+@sha256:[0-9a-f]{64}$'; then
        echo "error: $image is not pinned by digest: a release needs NAME:TAG@sha256:DIGEST (sh image/pin.sh)" >&2
        floating=1
    fi
done
exit $floating
