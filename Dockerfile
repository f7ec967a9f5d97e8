# amplint without torch: what `amplint check` needs. docs/ci.md shows how it is run.
FROM python:3.13-slim AS build
COPY pyproject.toml README.md LICENSE /source/
COPY amplint /source/amplint
COPY rules /source/rules
RUN python -m pip wheel --no-cache-dir --wheel-dir /wheels /source

FROM python:3.13-slim
# git, for --diff-base. A mounted repository belongs to another user, which git takes for an attack unless told otherwise.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && git config --system --add safe.directory "*"
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    python -m pip install --no-cache-dir --no-index --find-links /wheels amplint
RUN useradd --create-home amplint
USER amplint
WORKDIR /code
ENTRYPOINT ["amplint"]
CMD ["check"]
