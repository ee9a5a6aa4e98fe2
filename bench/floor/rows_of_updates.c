/*
 * The native passes of the yardstick `floor`: a chunk of a stream of pairs becomes rows of numbers, and rows become records.
 * It does the work of the server on valid pairs of the bench, and nothing else. Plain N-API.
 *
 *   scan(bytes, rows, bots) -> count
 *       Reads pairs of lines from the Buffer `bytes` until one is not complete or the Uint32Array `rows` is full. The first
 *       line is {"bot_id":N}; N goes into the Float64Array `bots`. The second one is an update, which is checked strictly as
 *       JSON and UTF-8. A row has six numbers, all but the first are positions in `bytes`:
 *
 *           0 type | 1 text start | 2 text end | 3 key start | 4 key end | 5 end of the pair
 *
 *       An update that is not valid has the type -1.
 *
 *   encode(bytes, rows, bots, ids, count, out, ends)
 *       Writes the keys and values of `count` records one after the other into the Buffer `out`, as src/shard/records/record.ts
 *       draws them, and the position after each into the Uint32Array `ends`. `out` needs 64 bytes for each record and its
 *       text.
 */
#include <node_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { row_length = 6, depth_max = 64 };
enum { arguments_max = 7 };

static const char* const types[] = {"message", "edited_message", "channel_post", "callback_query"};
static const char header_start[] = "{\"bot_id\":";
static const char chat_name[] = "chat", id_name[] = "id";

/* An update that is being checked. The ordering key is the id of the chat in its payload. */
struct update {
  const uint8_t* end;
  const uint8_t* key_start;
  const uint8_t* key_end;
};

/* Where a value stands on the way to the ordering key. */
enum place { payload, chat, elsewhere };

static const uint8_t* after_space(const uint8_t* at, const uint8_t* end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\r')) at++;
  return at;
}

/* Returns the first byte that is a quote, a backslash, a control character or not ASCII, or the end. */
static const uint8_t* after_plain(const uint8_t* at, const uint8_t* end) {
  const uint64_t ones = 0x0101010101010101u;
  while (end - at >= 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    uint64_t quotes = word ^ (ones * '"'), backslashes = word ^ (ones * '\\');
    uint64_t found = (((quotes - ones) & ~quotes) | ((backslashes - ones) & ~backslashes) |
                      ((word - ones * 0x20) & ~word) | word) & (ones * 0x80);
    if (found != 0) return at + (__builtin_ctzll(found) >> 3);
    at += 8;
  }
  while (at < end && *at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\') at++;
  return at;
}

static const uint8_t* after_escape(const uint8_t* at, const uint8_t* end) {
  if (end - at < 2 || at[1] == 0) return NULL;
  if (at[1] != 'u') return strchr("\"\\/bfnrt", at[1]) != NULL ? at + 2 : NULL;
  if (end - at < 6) return NULL;
  for (int nth = 2; nth < 6; nth++) {
    int letter = at[nth] | 0x20;
    bool is_digit = at[nth] >= '0' && at[nth] <= '9';
    if (!is_digit && !(letter >= 'a' && letter <= 'f')) return NULL;
  }
  return at + 6;
}

/* Skips a character that is not ASCII: table 3-7 of the Unicode Standard. */
static const uint8_t* after_character(const uint8_t* at, const uint8_t* end) {
  uint8_t first = at[0];
  if (first < 0xc2 || first > 0xf4) return NULL;
  int more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  if (end - at <= more) return NULL;
  uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (at[1] < low || at[1] > high) return NULL;
  for (int nth = 2; nth <= more; nth++) {
    if ((at[nth] & 0xc0) != 0x80) return NULL;
  }
  return at + more + 1;
}

/* `at` is after the opening quote. Each function returns the position after what it reads, or NULL if it is not valid. */
static const uint8_t* after_string(const uint8_t* at, const uint8_t* end) {
  while (at != NULL) {
    at = after_plain(at, end);
    if (at >= end || *at < 0x20) return NULL;
    if (*at == '"') return at + 1;
    at = *at == '\\' ? after_escape(at, end) : after_character(at, end);
  }
  return NULL;
}

static const uint8_t* after_digits(const uint8_t* at, const uint8_t* end) {
  const uint8_t* start = at;
  while (at < end && *at >= '0' && *at <= '9') at++;
  return at == start ? NULL : at;
}

static const uint8_t* after_number(const uint8_t* at, const uint8_t* end) {
  if (at < end && *at == '-') at++;
  at = at < end && *at == '0' ? at + 1 : after_digits(at, end);
  if (at != NULL && at < end && *at == '.') at = after_digits(at + 1, end);
  if (at == NULL || at >= end || (*at | 0x20) != 'e') return at;
  at++;
  if (at < end && (*at == '+' || *at == '-')) at++;
  return after_digits(at, end);
}

static const uint8_t* after_word(const uint8_t* at, const uint8_t* end, const char* word) {
  ptrdiff_t length = (ptrdiff_t)strlen(word);
  return end - at >= length && memcmp(at, word, (size_t)length) == 0 ? at + length : NULL;
}

static bool is_name(const uint8_t* start, const uint8_t* end, const char* name) {
  return (size_t)(end - start) == strlen(name) && memcmp(start, name, (size_t)(end - start)) == 0;
}

static const uint8_t* after_value(const uint8_t* at, struct update* update, int depth, enum place place);

/* `at` is after the opening brace or bracket, which `close` ends. */
static const uint8_t* after_members(const uint8_t* at, struct update* update, int depth, enum place place, char close) {
  const uint8_t* end = update->end;
  if (depth > depth_max) return NULL;
  at = after_space(at, end);
  if (at < end && *at == close) return at + 1;
  for (;;) {
    enum place below = elsewhere;
    bool is_key = false;
    if (close == '}') {
      if (at >= end || *at != '"') return NULL;
      const uint8_t* name = at + 1;
      at = after_string(name, end);
      if (at == NULL) return NULL;
      if (place == payload && is_name(name, at - 1, chat_name)) below = chat;
      is_key = place == chat && is_name(name, at - 1, id_name);
      at = after_space(at, end);
      if (at >= end || *at != ':') return NULL;
      at = after_space(at + 1, end);
    }
    const uint8_t* value = at;
    at = after_value(at, update, depth, below);
    if (at == NULL) return NULL;
    if (is_key) update->key_start = value, update->key_end = at;
    at = after_space(at, end);
    if (at >= end) return NULL;
    if (*at == close) return at + 1;
    if (*at != ',') return NULL;
    at = after_space(at + 1, end);
  }
}

static const uint8_t* after_value(const uint8_t* at, struct update* update, int depth, enum place place) {
  if (at >= update->end) return NULL;
  switch (*at) {
    case '{': return after_members(at + 1, update, depth + 1, place, '}');
    case '[': return after_members(at + 1, update, depth + 1, elsewhere, ']');
    case '"': return after_string(at + 1, update->end);
    case 't': return after_word(at, update->end, "true");
    case 'f': return after_word(at, update->end, "false");
    case 'n': return after_word(at, update->end, "null");
    default: return after_number(at, update->end);
  }
}

/* Returns the type of an update of the form {"message":{...}}, or -1. The text is what is between the outer braces. */
static int32_t check(const uint8_t* at, struct update* update, const uint8_t** text, const uint8_t** text_end) {
  const uint8_t* end = update->end;
  if (end - at < 2 || at[0] != '{' || at[1] != '"') return -1;
  *text = at + 1;
  const uint8_t* name = at + 2;
  const uint8_t* quote = memchr(name, '"', (size_t)(end - name));
  if (quote == NULL || end - quote < 3 || quote[1] != ':' || quote[2] != '{') return -1;
  at = after_value(quote + 2, update, 1, payload);
  if (at == NULL || end - at != 1 || *at != '}') return -1;
  *text_end = at;
  for (int32_t type = 0; type < (int32_t)(sizeof types / sizeof *types); type++) {
    if (is_name(name, quote, types[type])) return type;
  }
  return -1;
}

/* The memory of a Buffer or a typed array, and the number of its elements. */
struct span {
  void* data;
  size_t length;
};

static struct span span_of(napi_env env, napi_value value) {
  struct span span = {NULL, 0};
  napi_typedarray_type type;
  napi_get_typedarray_info(env, value, &type, &span.length, &span.data, NULL, NULL);
  return span;
}

static napi_value scan(napi_env env, napi_callback_info info) {
  napi_value given[arguments_max];
  size_t count = arguments_max;
  napi_get_cb_info(env, info, &count, given, NULL, NULL);
  struct span bytes = span_of(env, given[0]), rows = span_of(env, given[1]), bots = span_of(env, given[2]);
  const uint8_t *start = bytes.data, *at = start, *end = start + bytes.length;
  uint32_t pairs = 0;
  for (uint32_t* row = rows.data; pairs < bots.length && (pairs + 1) * row_length <= rows.length; row += row_length) {
    const uint8_t* header_end = memchr(at, '\n', (size_t)(end - at));
    if (header_end == NULL) break;
    const uint8_t* line = header_end + 1;
    struct update update = {.end = memchr(line, '\n', (size_t)(end - line))};
    if (update.end == NULL) break;
    const uint8_t* digit = after_word(at, header_end, header_start);
    double bot = 0;
    for (; digit != NULL && digit < header_end && *digit >= '0' && *digit <= '9'; digit++) bot = bot * 10 + (*digit - '0');
    const uint8_t *text = line, *text_end = line;
    int32_t type = digit == NULL || header_end - digit != 1 ? -1 : check(line, &update, &text, &text_end);
    if (update.key_start == NULL) update.key_start = update.key_end = line;
    ((double*)bots.data)[pairs++] = bot;
    at = update.end + 1;
    row[0] = (uint32_t)type;
    const uint8_t* places[] = {text, text_end, update.key_start, update.key_end, at};
    for (int nth = 1; nth < row_length; nth++) row[nth] = (uint32_t)(places[nth - 1] - start);
  }
  napi_value result;
  napi_create_uint32(env, pairs, &result);
  return result;
}

/* Tables for eight bytes at a time: crc_table[n] is for a byte that n others follow. */
static uint32_t crc_table[8][256];

static void fill_crc_table(void) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = (crc & 1) ? 0xedb88320u ^ (crc >> 1) : crc >> 1;
    crc_table[0][byte] = crc;
  }
  for (int nth = 1; nth < 8; nth++) {
    for (int byte = 0; byte < 256; byte++) {
      uint32_t before = crc_table[nth - 1][byte];
      crc_table[nth][byte] = (before >> 8) ^ crc_table[0][before & 255];
    }
  }
}

static uint32_t crc32(const uint8_t* at, const uint8_t* end) {
  uint32_t crc = ~0u;
  for (; end - at >= 8; at += 8) {
    uint32_t low, high;
    memcpy(&low, at, 4);
    memcpy(&high, at + 4, 4);
    low ^= crc;
    crc = crc_table[7][low & 255] ^ crc_table[6][low >> 8 & 255] ^ crc_table[5][low >> 16 & 255] ^
          crc_table[4][low >> 24] ^ crc_table[3][high & 255] ^ crc_table[2][high >> 8 & 255] ^
          crc_table[1][high >> 16 & 255] ^ crc_table[0][high >> 24];
  }
  for (; at < end; at++) crc = crc_table[0][(crc ^ *at) & 255] ^ crc >> 8;
  return ~crc;
}

static uint8_t* put(uint8_t* at, uint64_t number, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) *at++ = (uint8_t)(number >> shift);
  return at;
}

static uint8_t* put_bytes(uint8_t* at, const uint8_t* start, const uint8_t* end) {
  memcpy(at, start, (size_t)(end - start));
  return at + (end - start);
}

static napi_value encode(napi_env env, napi_callback_info info) {
  napi_value given[arguments_max];
  size_t count = arguments_max;
  napi_get_cb_info(env, info, &count, given, NULL, NULL);
  const uint8_t* bytes = span_of(env, given[0]).data;
  const uint32_t* row = span_of(env, given[1]).data;
  const double *bots = span_of(env, given[2]).data, *ids = span_of(env, given[3]).data;
  uint32_t pairs;
  napi_get_value_uint32(env, given[4], &pairs);
  uint8_t* out = span_of(env, given[5]).data;
  uint32_t* ends = span_of(env, given[6]).data;
  uint8_t* at = out;
  for (uint32_t nth = 0; nth < pairs; nth++, row += row_length) {
    uint8_t* start = at;
    *at++ = 'u';
    at = put(put(at, (uint64_t)bots[nth], 8), (uint64_t)ids[nth], 8);
    *at++ = 2;
    *at++ = (uint8_t)row[0];
    at = put(put(at, 0, 5), 0, 5);
    at = put(at, row[4] - row[3], 2);
    at = put_bytes(at, bytes + row[3], bytes + row[4]);
    at = put_bytes(at, bytes + row[1], bytes + row[2]);
    at = put(at, crc32(start, at), 4);
    ends[nth] = (uint32_t)(at - out);
  }
  return NULL;
}

NAPI_MODULE_INIT() {
  fill_crc_table();
  napi_value function;
  napi_create_function(env, "scan", NAPI_AUTO_LENGTH, scan, NULL, &function);
  napi_set_named_property(env, exports, "scan", function);
  napi_create_function(env, "encode", NAPI_AUTO_LENGTH, encode, NULL, &function);
  napi_set_named_property(env, exports, "encode", function);
  return exports;
}
