# Muster's controller, and its command line for those who look around inside.
#
#   make image                  the image muster-controller
#   make image RELEASE=1        the same, refused unless both base images below are pinned by digest
#
# `sh image/pin.sh` asks the registries for the digests of the tags and writes them here; docs/tasks/security.md says when.

ARG BUILD_IMAGE=docker.io/library/rust:1.95-slim-bookworm
ARG RUNTIME_IMAGE=gcr.io/distroless/cc-debian12:nonroot

FROM ${BUILD_IMAGE} AS build
ARG BUILD_IMAGE
ARG RUNTIME_IMAGE
# Anything but nothing and 0 makes it a release.
ARG RELEASE=
WORKDIR /src
COPY . .
RUN RELEASE="${RELEASE}" sh image/check-bases.sh "${BUILD_IMAGE}" "${RUNTIME_IMAGE}"
# As `make release` does. The debug information stays behind in target/dist, from where `make image` takes it.
RUN cargo build --profile shipped --locked --package muster-kube --package muster-cli --bins \
 && sh image/strip.sh target/dist target/shipped/muster-controller target/shipped/muster

FROM ${RUNTIME_IMAGE}
ARG RUNTIME_IMAGE
ARG VERSION=
ARG REVISION=
LABEL org.opencontainers.image.title="muster-controller" \
      org.opencontainers.image.description="Gang scheduler and gang provisioner for GPU clusters" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${RUNTIME_IMAGE}"
COPY --from=build /src/LICENSE /src/THIRD-PARTY-NOTICES /usr/share/doc/muster/
COPY --from=build /src/target/dist/muster-controller /src/target/dist/muster /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/muster-controller"]
