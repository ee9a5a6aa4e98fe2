/*
 * Splits pairs of lines, a header and its update (docs/use/protocol.md), and reads the headers as programs write them. Plain
 * N-API.
 *
 *   splitPairs(bytes, from, rows, bots, limits) -> count
 *       Takes the pairs that are complete in the Buffer `bytes`, from the offset `from[0]` on, and sets `from[0]` to where
 *       the next pair or the first incomplete one begins. Empty lines before a header are skipped. Each pair gets a row of the
 *       Int32Array `rows`, which src/shard/update-rows.ts draws, and its bot in the Float64Array `bots`, which has as many
 *       places as there may be rows. The Float64Array `limits` has the largest header, the largest update line, the smallest
 *       and the largest bot id, the largest ordering key, idempotency key and time to live, and whether a header may have a
 *       place in a trace, of which the row gets the offset in the header.
 *
 * A line that is too large sets a flag of its row. A bot that is NaN leaves the header to JavaScript: it may be refused, or
 * has escapes, fields with null, a field twice, or a value with other characters than printable ASCII. pair-header.ts of
 * src/features/ingest reads those, and pair-splitter.ts there gathers pairs that span chunks. Each byte of an update is read
 * once, by memchr.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { row_length = 16 };
/* The columns of a row. Keys are ranges and have two each. */
enum {
  start_column, header_end, update_start, end_column, type_column, key_letter = 7, first_id = 8,
  second_id = 10, idempotency_key = 12, ttl_column = 14, flags_column
};
enum { unchecked = -2, producer_letter = '=' };
enum { test_flag = 1, validated_flag = 2, header_too_large = 4, update_too_large = 8, traced_flag = 16, trace_shift = 8 };
enum { limits_length = 8 };

struct limits {
  double header_max, update_max, bot_min, bot_max, ordering_key_max, idempotency_key_max, ttl_max, is_traced;
};

/* A header that is being read. */
struct header {
  const uint8_t* bytes;
  const uint8_t* end;
  const struct limits* limits;
  int32_t* row;
};

static const uint8_t* after_space(const uint8_t* at, const uint8_t* end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\r')) at++;
  return at;
}

static const uint8_t* after_text(const uint8_t* at, const uint8_t* end, const char* text) {
  size_t length = strlen(text);
  return (size_t)(end - at) >= length && memcmp(at, text, length) == 0 ? at + length : NULL;
}

/* Reads a whole number without a leading zero, of at most `max`. */
static const uint8_t* take_number(const uint8_t* at, const uint8_t* end, double max, double* number) {
  const uint8_t* first = at;
  *number = 0;
  for (; at < end && *at >= '0' && *at <= '9'; at++) {
    *number = *number * 10 + (*at - '0');
    if (*number > max) return NULL;
  }
  return at == first || *first == '0' ? NULL : at;
}

/* Reads the content of a string in printable ASCII without escapes, of 1 to `max` bytes, into a range. */
static const uint8_t* take_text(const struct header* header, const uint8_t* at, double max, int32_t* range) {
  if (at == header->end || *at != '"') return NULL;
  const uint8_t* first = ++at;
  while (at < header->end && *at >= 0x20 && *at <= 0x7e && *at != '"' && *at != '\\') at++;
  if (at == header->end || *at != '"' || at == first || (double)(at - first) > max) return NULL;
  range[0] = (int32_t)(first - header->bytes);
  range[1] = (int32_t)(at - header->bytes);
  return at + 1;
}

static const uint8_t* take_ordering_key(const struct header* header, const uint8_t* at) {
  double max = header->limits->ordering_key_max;
  int32_t* id = header->row + first_id;
  if (header->row[key_letter] != 0) return NULL;
  header->row[key_letter] = producer_letter;
  header->row[second_id] = header->row[second_id + 1] = -1;
  if (at < header->end && *at == '"') return take_text(header, at, max, id);
  const uint8_t* first = at;
  while (at < header->end && *at >= '0' && *at <= '9') at++;
  if (at == first || *first == '0' || (double)(at - first) > max) return NULL;
  id[0] = (int32_t)(first - header->bytes);
  id[1] = (int32_t)(at - header->bytes);
  return at;
}

static const uint8_t* take_ttl(const struct header* header, const uint8_t* at) {
  double seconds;
  if (header->row[ttl_column] != 0) return NULL;
  at = take_number(at, header->end, header->limits->ttl_max, &seconds);
  if (at != NULL) header->row[ttl_column] = (int32_t)seconds;
  return at;
}

/*
 * Reads a place in a trace of version 00 with the flags that are kept: 00-<32 digits>-<16 digits>-0<0 to 3>. Neither id may be
 * zero.
 */
static const uint8_t* take_trace(const struct header* header, const uint8_t* at) {
  static const char shape[] = "\"00-11111111111111111111111111111111-2222222222222222-0f\"";
  size_t length = sizeof shape - 1;
  if (header->limits->is_traced == 0 || (size_t)(header->end - at) < length) return NULL;
  bool is_zero[2] = {true, true};
  for (size_t nth = 0; nth < length; nth++) {
    uint8_t got = at[nth];
    char wanted = shape[nth];
    if (wanted == 'f') {
      if (got < '0' || got > '3') return NULL;
    } else if (wanted == '1' || wanted == '2') {
      if (!((got >= '0' && got <= '9') || (got >= 'a' && got <= 'f'))) return NULL;
      if (got != '0') is_zero[wanted - '1'] = false;
    } else if (got != (uint8_t)wanted) {
      return NULL;
    }
  }
  if (is_zero[0] || is_zero[1]) return NULL;
  int32_t offset = (int32_t)(at + 1 - header->bytes) - header->row[start_column];
  header->row[flags_column] |= traced_flag | offset << trace_shift;
  return at + length;
}

/* Reads the member whose name begins at `at`. Returns the position after its value, or NULL. */
static const uint8_t* take_member(const struct header* header, const uint8_t* at, unsigned* seen) {
  static const char* const names[] = {"\"ordering_key\"", "\"idempotency_key\"", "\"ttl\"", "\"test\"", "\"validate\"",
                                      "\"traceparent\""};
  const uint8_t *end = header->end, *value = NULL;
  unsigned nth = 0;
  for (; nth < sizeof names / sizeof names[0]; nth++) {
    value = after_text(at, end, names[nth]);
    if (value != NULL) break;
  }
  if (value == NULL || (*seen & (1u << nth)) != 0) return NULL;
  *seen |= 1u << nth;
  value = after_space(value, end);
  if (value == end || *value != ':') return NULL;
  value = after_space(value + 1, end);
  switch (nth) {
    case 0:
      return take_ordering_key(header, value);
    case 1:
      return take_text(header, value, header->limits->idempotency_key_max, header->row + idempotency_key);
    case 2:
      return take_ttl(header, value);
    case 3:
      at = after_text(value, end, "true");
      if (at != NULL) header->row[flags_column] |= test_flag;
      return at != NULL ? at : after_text(value, end, "false");
    case 4:
      header->row[flags_column] |= validated_flag;
      return after_text(value, end, "\"telegram\"");
    default:
      return take_trace(header, value);
  }
}

/* Reads a header that begins with the bot. Returns the bot, or NaN. */
static double take_header(const struct header* header) {
  const uint8_t *end = header->end, *at = header->bytes + header->row[start_column];
  double bot;
  unsigned seen = 0;
  at = after_text(at, end, "{\"bot_id\":");
  if (at == NULL) return NAN;
  at = take_number(after_space(at, end), end, header->limits->bot_max, &bot);
  if (at == NULL || bot < header->limits->bot_min) return NAN;
  for (;;) {
    at = after_space(at, end);
    if (at == end) return NAN;
    if (*at == '}') return at + 1 == end ? bot : NAN;
    if (*at != ',') return NAN;
    at = take_member(header, after_space(at + 1, end), &seen);
    if (at == NULL) return NAN;
  }
}

static const uint8_t* line_end(const uint8_t* at, const uint8_t* end) {
  return at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
}

/* Returns the end of the line from `start` to the line feed at `end`. */
static const uint8_t* without_return(const uint8_t* start, const uint8_t* end) {
  return end > start && end[-1] == '\r' ? end - 1 : end;
}

/* Takes pairs from `*from` on and moves it. Returns their number. */
static uint32_t take_pairs(const uint8_t* bytes, size_t length, const struct limits* max, int32_t* from,
                           int32_t* rows, double* bots, size_t pairs_max) {
  const uint8_t *at = bytes + *from, *end = bytes + length;
  uint32_t pairs = 0;
  while (pairs < pairs_max) {
    const uint8_t* header_line = line_end(at, end);
    if (header_line == NULL) break;
    const uint8_t* header_stop = without_return(at, header_line);
    if (header_stop == at) {
      at = header_line + 1;
      continue;
    }
    const uint8_t* update_line = line_end(header_line + 1, end);
    if (update_line == NULL) break;
    int32_t* row = rows + (size_t)pairs * row_length;
    memset(row, 0, row_length * sizeof *row);
    row[start_column] = (int32_t)(at - bytes);
    row[header_end] = (int32_t)(header_stop - bytes);
    row[update_start] = (int32_t)(header_line + 1 - bytes);
    row[end_column] = (int32_t)(without_return(header_line + 1, update_line) - bytes);
    row[type_column] = unchecked;
    double bot = NAN;
    if (row[header_end] - row[start_column] > max->header_max) {
      row[flags_column] = header_too_large;
    } else if (row[end_column] - row[update_start] > max->update_max) {
      row[flags_column] = update_too_large;
    } else {
      const struct header header = {bytes, header_stop, max, row};
      bot = take_header(&header);
    }
    bots[pairs++] = bot;
    at = update_line + 1;
  }
  *from = (int32_t)(at - bytes);
  return pairs;
}

/* What follows is for Node.js alone. test/fuzz/native compiles the rest without it. */
#ifndef WITHOUT_NODE
#include <node_api.h>

static napi_value split_pairs(napi_env env, napi_callback_info info) {
  size_t count = 5, length, from_length, rows_length, bots_length, limits_count;
  napi_value args[5], result;
  napi_typedarray_type types[4];
  void *data, *from, *rows, *bots, *limits;
  if (napi_get_cb_info(env, info, &count, args, NULL, NULL) != napi_ok || count != 5 ||
      napi_get_buffer_info(env, args[0], &data, &length) != napi_ok ||
      napi_get_typedarray_info(env, args[1], &types[0], &from_length, &from, NULL, NULL) != napi_ok ||
      napi_get_typedarray_info(env, args[2], &types[1], &rows_length, &rows, NULL, NULL) != napi_ok ||
      napi_get_typedarray_info(env, args[3], &types[2], &bots_length, &bots, NULL, NULL) != napi_ok ||
      napi_get_typedarray_info(env, args[4], &types[3], &limits_count, &limits, NULL, NULL) != napi_ok ||
      types[0] != napi_int32_array || types[1] != napi_int32_array || types[2] != napi_float64_array ||
      types[3] != napi_float64_array || from_length != 1 || limits_count != limits_length ||
      rows_length / row_length < bots_length || length > INT32_MAX || *(int32_t*)from < 0 ||
      (size_t) * (int32_t*)from > length) {
    napi_throw_type_error(env, NULL, "expected splitPairs(bytes, from, rows, bots, limits)");
    return NULL;
  }
  struct limits max;
  memcpy(&max, limits, sizeof max);
  uint32_t pairs = take_pairs(data, length, &max, from, rows, bots, bots_length);
  return napi_create_uint32(env, pairs, &result) == napi_ok ? result : NULL;
}

NAPI_MODULE_INIT() {
  napi_value function;
  if (napi_create_function(env, "splitPairs", NAPI_AUTO_LENGTH, split_pairs, NULL, &function) == napi_ok) {
    napi_set_named_property(env, exports, "splitPairs", function);
  }
  return exports;
}
#endif
