#!/bin/sh
# Pins the base images of the Dockerfile: asks their registries which digests the tags have now, and writes these beside the tags.
# Needs docker with buildx, and a network.
set -eu
cd "$(dirname "$0")/.."
for name in BUILD_IMAGE RUNTIME_IMAGE; do
    tag=$(sed -n "s/^ARG $name=\([^@]*\).*/\1/p" Dockerfile)
    digest=$(docker buildx imagetools inspect "$tag" --format '{{.Manifest.Digest}}')
    RELEASE=1 sh image/check-bases.sh "$tag@$digest"
    sed -i "s|^ARG $name=.*|ARG $name=$tag@$digest|" Dockerfile
    echo "$name is $tag@$digest"
done
