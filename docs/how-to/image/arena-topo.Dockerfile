# An image of arena-topo itself, for its controller and its agent. It runs without root, and writes to no file.
#   docker build --tag registry.example.com/arena-topo:1.0 --file docs/how-to/image/arena-topo.Dockerfile .
FROM python:3.13-slim AS build

RUN python -m venv /opt/arena-topo
# What the package is built from, and nothing else of a checkout: no history, and no environment of its own.
COPY pyproject.toml README.md LICENSE /src/
COPY arena_topo /src/arena_topo
COPY templates /src/templates
# Copying rounds the times of files, and Python compiles anew at each start what is not of the very time of its source,
# unless it is to look at no times: nothing in an image changes.
RUN /opt/arena-topo/bin/pip install --no-cache-dir --no-compile "/src[agent,controller]" \
 && /opt/arena-topo/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/arena-topo

FROM python:3.13-slim

COPY --from=build /opt/arena-topo /opt/arena-topo
USER 65532:65532
ENTRYPOINT ["/opt/arena-topo/bin/arena-topo"]
