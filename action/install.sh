#!/usr/bin/env bash
# Install amplint into an environment of its own, and write the path of its command to GITHUB_OUTPUT.
set -euo pipefail

environment="$RUNNER_TEMP/amplint-environment"
requirement="$AMPLINT_SOURCE"
if [[ -n "$AMPLINT_VERSION" ]]; then
  requirement="amplint==$AMPLINT_VERSION"
fi

python="$(command -v python3 || command -v python)"
"$python" -m venv "$environment"
binaries="$environment/bin"
if [[ -d "$environment/Scripts" ]]; then
  binaries="$environment/Scripts"
fi
"$binaries/python" -m pip install --quiet --disable-pip-version-check "$requirement"
"$binaries/amplint" --version
echo "amplint=$binaries/amplint" >>"$GITHUB_OUTPUT"
