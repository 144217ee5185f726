# Muster's controller, and its command line for those who look around inside.
#
#   docker build --tag muster-controller .

FROM docker.io/library/rust:1-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package muster-kube --bin muster-controller \
 && cargo build --release --locked --package muster-cli --bin muster

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/target/release/muster-controller /src/target/release/muster /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/muster-controller"]
