# syntax=docker/dockerfile:1
# Builds on the builder's own processor for any other: docker build --platform linux/arm64 .
FROM --platform=$BUILDPLATFORM node:22-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
COPY simulator/package.json simulator/
COPY console/package.json console/
RUN npm ci --omit=dev --no-audit --no-fund
COPY src src
COPY simulator simulator
COPY console console
COPY scripts/build.ts scripts/sbom.ts scripts/
# docker build --build-arg COMMIT=$(git rev-parse HEAD) .
ARG COMMIT=unknown
ARG TARGETARCH
RUN platform="linux-${TARGETARCH}"; \
    if [ "${TARGETARCH}" = amd64 ]; then platform=linux-x64; fi; \
    npm run build -- --out /out --commit "${COMMIT}" "${platform}" \
    && mv "/out/sluice-${platform}" /out/sluice \
    && mkdir /out/data

# The final image has no shell and no HTTP client; this one is a static file.
FROM busybox:1.37-musl AS busybox

FROM gcr.io/distroless/base-debian12:nonroot
COPY --from=busybox /bin/busybox /usr/bin/wget
COPY --from=build /out/sluice /usr/local/bin/sluice
COPY --from=build --chown=65532:65532 /out/data /var/lib/sluice
USER 65532:65532
WORKDIR /var/lib/sluice
VOLUME /var/lib/sluice
ENV SLUICE_CONFIG=/etc/sluice/sluice.yaml
EXPOSE 8080 8081
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["/usr/bin/wget", "-q", "-O", "/dev/null", "http://127.0.0.1:8080/readyz"]
ENTRYPOINT ["/usr/local/bin/sluice"]
CMD ["serve"]
