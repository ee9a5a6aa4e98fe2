#!/usr/bin/env bash
# Pushes updates with curl: the first line of its input with a single call, and the other lines over one stream. A line is
# an update, such as {"message":{"text":"hello"}}. It prints the result of each push.
#
#     ./scripts/example producer.sh [token] < updates.ndjson
#
# If a push fails and may succeed later, it is sent again with the same idempotency key, so that it is stored only once.
set -euo pipefail

expected='producer: expected ADMIN_KEY, BOT_TOKEN, and updates as lines of the input'
: "${ADMIN_KEY:?$expected}" "${BOT_TOKEN:?$expected}"
url=${ADMIN_URL:-http://127.0.0.1:8082}
bot_id=${BOT_TOKEN%%:*}
attempts=10
run=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT

# The key is not an argument of curl, because other users of the machine can read those.
call() {
  curl --config <(printf 'header = "Authorization: Bearer %s"\n' "$ADMIN_KEY") --silent --show-error "$@"
}

# curl repeats the push if the connection fails and after 408, 429, 500, 502, 503 and 504. It waits as long as Retry-After
# says. A file gets only the last response.
push() {
  local status
  status=$(call --retry "$attempts" --retry-all-errors --max-time 30 --header "Idempotency-Key: $run-0" \
    --data-binary "$1" --output "$directory/response" --write-out '%{http_code}' "$url/v1/bots/$bot_id/updates")
  cat "$directory/response"
  echo
  if [ "$status" != 200 ]; then
    echo "producer: the push was refused with status $status" >&2
    return 1
  fi
}

# Writes the lines of the input as pairs: a header with the bot and the key, and the update.
pairs() {
  local number=0 update
  while IFS= read -r update; do
    number=$((number + 1))
    printf '{"bot_id":%s,"idempotency_key":"%s-%s"}\n%s\n' "$bot_id" "$run" "$number" "$update"
  done
}

# Sends the pairs in a file. If the stream breaks, the pairs without a result are sent again in a new one.
push_all() {
  local attempt results=0 total
  total=$(($(wc -l <"$1") / 2))
  for ((attempt = 1; results < total; attempt++)); do
    if ((attempt > attempts)); then
      echo "producer: gave up after $attempts streams" >&2
      return 1
    fi
    ((attempt == 1)) || sleep 1
    # "." sends while it receives. --fail writes no results if the server refuses the stream.
    tail -n "+$((2 * results + 1))" "$1" |
      call --fail --no-buffer --request POST --upload-file . "$url/v1/updates" >"$directory/results" || true
    # The last line may be incomplete.
    head -n "$(wc -l <"$directory/results")" "$directory/results"
    results=$((results + $(wc -l <"$directory/results")))
  done
}

if ! IFS= read -r first; then
  echo "$expected" >&2
  exit 2
fi
push "$first"
pairs >"$directory/pairs"
push_all "$directory/pairs"
