#!/usr/bin/env bash
# Pushes updates with curl: the first line of its input with a single call, and the other lines over one stream. A line is
# an update, such as {"message":{"message_id":1,"date":1795259700,"chat":{"id":42,"type":"private"},"text":"hello"}}. It prints the number
# of each line with the result of its push.
#
#     ./scripts/example producer.sh [token] < updates.ndjson
#
# If a push fails and may succeed later, it is sent again with the same idempotency key, so that it is stored only once. The
# exit code is not 0 if an update was not pushed.
set -euo pipefail

expected='producer: expected ADMIN_KEY, BOT_TOKEN, and updates as lines of the input'
: "${ADMIN_KEY:?$expected}" "${BOT_TOKEN:?$expected}"
url=${ADMIN_URL:-http://127.0.0.1:8082}
bot_id=${BOT_TOKEN%%:*}
attempts=10
# The results of pairs that may succeed if they are sent again (docs/use/protocol.md, section 9.3).
passing='^[{]"error":[{]"code":"(STORE_UNAVAILABLE|OUTCOME_UNKNOWN|INTERNAL)"'
run=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT

# The key is not an argument of curl, because other users of the machine can read those. --silent alone does not stop the
# progress meter of --upload-file.
call() {
  curl --config <(printf 'header = "Authorization: Bearer %s"\n' "$ADMIN_KEY") --silent --show-error \
    --no-progress-meter "$@"
}

# Prints the lines of the input. read fails at a last line without a line break, but it reads the line.
lines() {
  local line
  while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done
}

# Pushes the update in a file. curl repeats the push if the connection fails and after 408, 429, 500, 502, 503 and 504. It
# waits as long as Retry-After says. A file gets only the last response.
push() {
  local status
  status=$(call --retry "$attempts" --retry-all-errors --retry-max-time 120 --max-time 30 \
    --header "Idempotency-Key: $run-1" --data-binary "@$1" --output "$directory/response" \
    --write-out '%{http_code}' "$url/v1/bots/$bot_id/updates")
  echo "1: $(cat "$directory/response")"
  if [ "$status" != 200 ]; then
    echo "producer: the push was refused with status $status" >&2
    return 1
  fi
}

# Writes the updates as pairs, with the numbers of their lines: a header with the bot and the key, and the update.
pairs() {
  awk -v bot_id="$bot_id" -v run="$run" \
    '{ print "{\"bot_id\":" bot_id ",\"idempotency_key\":\"" run "-" NR + 1 "\"}\n" $0 }'
}

# Sends the pairs in the file `pairs` over one stream.
stream() {
  # "." sends while it receives. --fail writes no results if the server refuses the stream. A stream without a byte for
  # 30 s is dead.
  call --fail --no-buffer --speed-limit 1 --speed-time 30 --request POST --upload-file . "$url/v1/updates" \
    <"$directory/pairs" >"$directory/received" || true
  # The last line may be incomplete.
  head -n "$(wc -l <"$directory/received")" "$directory/received" >"$directory/results"
}

# Prints the results that are final, and leaves the other pairs in the file `pairs`.
settle() {
  : >"$directory/left"
  awk -v passing="$passing" -v left="$directory/left" '
    FILENAME == ARGV[1] { result[FNR] = $0; next }
    FNR % 2 == 1 { header = $0; next }
    result[FNR / 2] == "" || result[FNR / 2] ~ passing { print header "\n" $0 > left; next }
    { number = header; gsub(/.*-|".*$/, "", number); print number ": " result[FNR / 2] }
  ' "$directory/results" "$directory/pairs"
  mv "$directory/left" "$directory/pairs"
}

push_all() {
  local failures=0 before
  while [ -s "$directory/pairs" ]; do
    if ((failures == attempts)); then
      echo "producer: gave up after $attempts streams; $(($(wc -l <"$directory/pairs") / 2)) updates are left" >&2
      return 1
    fi
    ((failures == 0)) || sleep 1
    before=$(wc -l <"$directory/pairs")
    stream
    settle
    if (($(wc -l <"$directory/pairs") < before)); then failures=0; else failures=$((failures + 1)); fi
  done
}

lines >"$directory/updates"
if [ ! -s "$directory/updates" ]; then
  echo "$expected" >&2
  exit 2
fi
head -n 1 "$directory/updates" >"$directory/first"
push "$directory/first"
tail -n +2 "$directory/updates" | pairs >"$directory/pairs"
push_all | tee "$directory/printed"
if grep -q '^[0-9]*: [{]"error"' "$directory/printed"; then
  echo 'producer: the server has refused updates' >&2
  exit 1
fi
