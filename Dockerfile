# Nameplate in a small image: docker build --target nameplate .
# The file is checked by a test: every COPY source exists, and every command of docker-compose.yml is accepted.

FROM rust:1.94-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY .cargo ./.cargo
COPY benches ./benches
COPY migrations ./migrations
COPY templates ./templates
COPY src ./src
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin nameplate \
    && install -D --strip target/release/nameplate /out/nameplate

# A CA for trials, in the profile `pebble` of docker-compose.yml. It validates nothing and is trusted by nobody.
FROM debian:bookworm-slim AS pebble
RUN apt-get update \
    && apt-get install -y --no-install-recommends pebble openssl \
    && rm -rf /var/lib/apt/lists/*
COPY deploy/pebble/start /usr/local/bin/start-pebble
COPY deploy/pebble/config.json /etc/pebble.json
RUN useradd --system --uid 10002 --no-create-home pebble && install -d -o 10002 -g 10002 /pebble
USER 10002:10002
VOLUME /pebble
EXPOSE 14000
ENTRYPOINT ["/usr/local/bin/start-pebble"]

FROM debian:bookworm-slim AS nameplate
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --no-create-home nameplate \
    && install -d -o 10001 -g 10001 -m 0700 /var/lib/nameplate
COPY --from=build /out/nameplate /usr/local/bin/nameplate
USER 10001:10001
WORKDIR /var/lib/nameplate
VOLUME /var/lib/nameplate
# API and pages; feed and an edge's HTTPS; an edge's plain HTTP; health and metrics.
EXPOSE 8080 8443 8081 9090
STOPSIGNAL SIGTERM
ENTRYPOINT ["nameplate"]
CMD ["--help"]
