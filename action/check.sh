#!/usr/bin/env bash
# Check what a pull request brings, in the mode that AMPLINT_MODE names. The exit status is amplint's.
set -euo pipefail

stop() {
  echo "::error title=amplint::$1"
  exit 2
}

# Judge changed lines only, where there is something to compare with. A checkout has one commit unless it is asked for
# more, and amplint has to see where the branches part.
against_base() {
  local base="$AMPLINT_BASE"
  if [[ -z "$base" ]]; then
    if [[ -z "${GITHUB_BASE_REF:-}" ]]; then
      return
    fi
    base="origin/$GITHUB_BASE_REF"
  fi
  arguments+=("--diff-base=$base")
  if git merge-base "$base" HEAD >/dev/null 2>&1; then
    return
  fi
  if [[ "$(git rev-parse --is-shallow-repository)" == true ]]; then
    git fetch --quiet --no-tags --unshallow origin "$(git rev-parse HEAD)"
  fi
  if [[ -n "${GITHUB_BASE_REF:-}" ]]; then
    fetch_branch "$GITHUB_BASE_REF"
  fi
}

fetch_branch() {
  git fetch --quiet --no-tags origin "+refs/heads/$1:refs/remotes/origin/$1"
}

# Run amplint with these options too, and keep its exit status.
check() {
  status=0
  "$AMPLINT" "${arguments[@]}" "$@" "${paths[@]}" || status=$?
}

annotate() {
  local sarif="$RUNNER_TEMP/amplint.sarif"
  rm -f "$sarif"
  against_base
  check --quiet --output-format sarif --output-file "$sarif"
  if [[ -s "$sarif" ]]; then
    echo "sarif=$sarif" >>"$GITHUB_OUTPUT"
  fi
  check --output-format github
}

suggest() {
  local found="$RUNNER_TEMP/amplint.rdjson"
  rm -f "$found"
  against_base
  check --output-format rdjson --output-file "$found"
  if [[ -s "$found" ]]; then
    reviewdog -name=amplint -f=rdjson -reporter=github-pr-review -filter-mode=nofilter -fail-level=none <"$found"
  fi
}

commit() {
  if [[ -z "${GITHUB_HEAD_REF:-}" ]]; then
    stop "Mode commit pushes to the branch of a pull request, and this run is not for one."
  fi
  if [[ "$HEAD_REPOSITORY" != "$GITHUB_REPOSITORY" ]]; then
    echo "::notice title=amplint::This pull request comes from a fork, where nothing can be pushed: it is only checked."
    against_base
    check --output-format github
    return
  fi
  if [[ -n "$(git status --porcelain --untracked-files=no)" ]]; then
    stop "An earlier step changed files. Mode commit needs a clean checkout, since it pushes nothing but its own fixes."
  fi
  fetch_branch "$GITHUB_HEAD_REF"
  git checkout --quiet --detach "refs/remotes/origin/$GITHUB_HEAD_REF"
  against_base
  check --fix --no-unsafe-fixes --output-format github
  if ((status > 1)); then
    stop "amplint failed, see above: nothing is pushed."
  fi
  if git diff --quiet; then
    return
  fi
  git -c user.name="github-actions[bot]" -c user.email="41898282+github-actions[bot]@users.noreply.github.com" \
    commit --quiet --all --message "Apply amplint's safe fixes"
  git push --quiet origin "HEAD:refs/heads/$GITHUB_HEAD_REF"
  echo "::notice title=amplint::Pushed the safe fixes to $GITHUB_HEAD_REF."
}

if ! git rev-parse --git-dir >/dev/null 2>&1; then
  stop "There is no checkout in $PWD: put a step with actions/checkout before this one."
fi

read -r -d '' -a arguments <<<"check $AMPLINT_ARGS" || true
read -r -d '' -a paths <<<"-- $AMPLINT_PATHS" || true
case "$AMPLINT_FAIL" in
  true) ;;
  false) arguments+=(--exit-zero) ;;
  *) stop "fail is '$AMPLINT_FAIL'; it may be true or false." ;;
esac

case "$AMPLINT_MODE" in
  annotate) annotate ;;
  suggest) suggest ;;
  commit) commit ;;
  *) stop "mode is '$AMPLINT_MODE'; it may be annotate, suggest or commit." ;;
esac
echo "status=$status" >>"$GITHUB_OUTPUT"
exit "$status"
