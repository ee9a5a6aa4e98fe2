/*
 * Encodes the records of a group, keys and values, one after the other into one Buffer. Plain N-API.
 *
 * src/shard/records/record-keys.ts and src/shard/records/record.ts draw the layouts and decode them. Like there, all numbers are big-endian, a
 * queue is one exact number (its bot, plus 2^52 for the /test/ namespace), and the CRC-32 at the end covers the key and the value
 * before it.
 *
 *   encodeRows(bytes, rows, hashes, numbers, count, ends, out, at) -> the position after the last record
 *       Writes `count` `u` records of updates to `out` from `at` on, each followed by the `i` record of its idempotency key if
 *       it has one. The updates are in the Buffer `bytes`, and rows of the Int32Array `rows` have their types and the places of
 *       their texts and ordering keys (src/shard/update-rows.ts). The Buffer `hashes` has the hashes of the keys
 *       (src/shard/idempotency/key-hashes.ts). The Float64Array `numbers` has seven for each: the number of its row, queue, update id, time
 *       of acceptance in seconds, expiry in milliseconds, the half-day of the key or -1, time of acceptance in milliseconds.
 *       Sets the position after the records of each update in the Int32Array `ends`. A row whose flags say so has the place
 *       of its update in a trace among the bytes of its header; its `u` record has version 3.
 *
 *   encodeQueueStates(numbers, count, out)
 *       Writes `count` `s` records of 42 bytes. `numbers` has seven for each: queue, next id, floor, live count, live
 *       bytes, idempotency day, idempotency count.
 *
 * A number that its field cannot hold, a range that is not within the bytes, and an array or Buffer that is too small, is a
 * RangeError.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { version = 2, traced_version = 3, crc_bytes = 4, trace_bytes = 25 };
enum { queue_id_bytes = 8, update_key_bytes = 1 + queue_id_bytes + 8, update_header_bytes = 14 };
enum { queue_state_bytes = 1 + queue_id_bytes + 33 };
enum { hash_bytes = 16, keyed_bytes = 1 + 4 + queue_id_bytes + hash_bytes + 31 };
enum { update_numbers = 7, state_numbers = 7, ordering_key_bytes_max = 0xffff };
/* The columns of a row. */
enum { row_length = 16, type_column = 4, text_start, text_end, key_letter, first_id, second_id = 10, flags_column = 15 };
enum { traced_flag = 16, trace_shift = 8, trace_length = 55 };

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
    uint32_t low = crc ^ (at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
    crc = crc_table[7][low & 255] ^ crc_table[6][low >> 8 & 255] ^ crc_table[5][low >> 16 & 255] ^
          crc_table[4][low >> 24] ^ crc_table[3][at[4]] ^ crc_table[2][at[5]] ^ crc_table[1][at[6]] ^
          crc_table[0][at[7]];
  }
  for (; at < end; at++) crc = crc_table[0][(crc ^ *at) & 255] ^ crc >> 8;
  return ~crc;
}

/* The record that is being written. */
struct record {
  uint8_t* start;
  uint8_t* at;
  /* Whether a number did not fit into its field. */
  bool is_out_of_range;
};

static void put_number(struct record* record, double number, int bytes) {
  if (!(number >= 0 && number < (double)(UINT64_C(1) << (8 * bytes)))) {
    record->is_out_of_range = true;
    return;
  }
  uint64_t value = (uint64_t)number;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) *record->at++ = (uint8_t)(value >> shift);
}

static void put_double(struct record* record, double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  for (int shift = 56; shift >= 0; shift -= 8) *record->at++ = (uint8_t)(bits >> shift);
}

static void put_queue(struct record* record, double queue) {
  const double test_namespace = (double)(UINT64_C(1) << 52);
  bool is_test = queue >= test_namespace;
  *record->at++ = is_test;
  put_number(record, is_test ? queue - test_namespace : queue, queue_id_bytes - 1);
}

static void put_crc(struct record* record) {
  put_number(record, crc32(record->start, record->at), crc_bytes);
}

/* The bytes that the ranges of a row are places of. */
struct source {
  const uint8_t* bytes;
  size_t length;
};

static bool is_within(const struct source* source, const int32_t* range) {
  return range[0] >= 0 && range[1] >= range[0] && (size_t)range[1] <= source->length;
}

static void put_range(struct record* record, const struct source* source, const int32_t* range) {
  size_t length = (size_t)(range[1] - range[0]);
  if (length > 0) memcpy(record->at, source->bytes + range[0], length);
  record->at += length;
}

static int nibble_of(uint8_t digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static void put_hex(struct record* record, const uint8_t* digits, int bytes) {
  for (int nth = 0; nth < bytes; nth++) {
    int high = nibble_of(digits[2 * nth]), low = nibble_of(digits[2 * nth + 1]);
    if (high < 0 || low < 0) {
      record->is_out_of_range = true;
      return;
    }
    *record->at++ = (uint8_t)(high * 16 + low);
  }
}

/* Writes the bytes of 00-<trace id>-<span id>-<flags>. */
static void put_trace(struct record* record, const uint8_t* text) {
  put_hex(record, text + 3, 16);
  put_hex(record, text + 36, 8);
  put_hex(record, text + 53, 1);
}

/* Returns the place in a trace of an update that has one, or NULL if it is not within the bytes. */
static const uint8_t* trace_of(const struct source* source, const int32_t* row) {
  int64_t from = (int64_t)row[0] + (row[flags_column] >> trace_shift);
  return from >= 0 && from + trace_length <= (int64_t)source->length ? source->bytes + from : NULL;
}

/* Writes one record to the bytes before `end`. Returns its length, or 0. */
static size_t put_update(const struct source* source, const int32_t* row, const double* numbers,
                         uint8_t* at, const uint8_t* end) {
  const int32_t *text = row + text_start, *id = row + first_id, *second = row + second_id;
  bool has_key = row[key_letter] != 0, has_second = has_key && second[0] >= 0;
  if (row[type_column] < 0 || row[key_letter] < 0 || !is_within(source, text) ||
      (has_key && !is_within(source, id)) || (has_second && !is_within(source, second))) {
    return 0;
  }
  size_t key_length = has_key ? 1 + (size_t)(id[1] - id[0]) : 0;
  if (has_second) key_length += 1 + (size_t)(second[1] - second[0]);
  bool has_trace = row[flags_column] > 0 && (row[flags_column] & traced_flag) != 0;
  const uint8_t* trace = has_trace ? trace_of(source, row) : NULL;
  if (has_trace && trace == NULL) return 0;
  size_t text_length = (size_t)(text[1] - text[0]);
  size_t length = (has_trace ? trace_bytes : 0) + update_key_bytes + update_header_bytes + key_length + text_length + crc_bytes;
  if (key_length > ordering_key_bytes_max || (size_t)(end - at) < length) return 0;
  struct record record = {at, at, false};
  *record.at++ = 'u';
  put_queue(&record, numbers[1]);
  put_number(&record, 0, 4);
  put_number(&record, numbers[2], 4);
  *record.at++ = has_trace ? traced_version : version;
  put_number(&record, row[type_column], 1);
  put_number(&record, numbers[3], 4);
  put_number(&record, numbers[4], 6);
  put_number(&record, (double)key_length, 2);
  if (has_trace) put_trace(&record, trace);
  if (record.is_out_of_range) return 0;
  if (has_key) {
    *record.at++ = (uint8_t)row[key_letter];
    put_range(&record, source, id);
  }
  if (has_second) {
    *record.at++ = '/';
    put_range(&record, source, second);
  }
  put_range(&record, source, text);
  put_crc(&record);
  return length;
}

/*
 * Writes the record of the key of an update to the bytes before `end`. The hashes are those of the key and of the text. Returns
 * its length, or 0.
 */
static size_t put_keyed(const uint8_t* hashes, const double* numbers, uint8_t* at, const uint8_t* end) {
  struct record record = {at, at, false};
  if (end - at < keyed_bytes) return 0;
  *record.at++ = 'i';
  put_number(&record, numbers[5], 4);
  put_queue(&record, numbers[1]);
  memcpy(record.at, hashes, hash_bytes);
  record.at += hash_bytes;
  *record.at++ = version;
  put_number(&record, numbers[2], 4);
  put_number(&record, numbers[6], 6);
  memcpy(record.at, hashes + hash_bytes, hash_bytes);
  record.at += hash_bytes;
  if (record.is_out_of_range) return 0;
  put_crc(&record);
  return keyed_bytes;
}

/* Writes the record of a queue. Returns false if a number does not fit. */
static bool put_state(const double* own, uint8_t* start) {
  struct record record = {start, start, false};
  *record.at++ = 's';
  put_queue(&record, own[0]);
  *record.at++ = version;
  for (int field = 1; field <= 3; field++) put_number(&record, own[field], 4);
  put_double(&record, own[4]);
  for (int field = 5; field <= 6; field++) put_number(&record, own[field], 4);
  if (record.is_out_of_range) return false;
  put_crc(&record);
  return true;
}

/* What follows is for Node.js alone. test/fuzz/native compiles the rest without it. */
#ifndef WITHOUT_NODE
#include <node_api.h>

static napi_value refuse(napi_env env) {
  napi_throw_range_error(env, NULL, "a record does not fit");
  return NULL;
}

static napi_value encode_rows(napi_env env, napi_callback_info info) {
  size_t count = 8, rows_length, hashes_length, numbers_length, ends_length, out_length;
  napi_value args[8], result;
  napi_typedarray_type rows_type, numbers_type, ends_type;
  void *bytes, *rows, *hashes, *numbers, *ends, *out;
  struct source source;
  uint32_t updates, from;
  if (napi_get_cb_info(env, info, &count, args, NULL, NULL) != napi_ok || count != 8 ||
      napi_get_buffer_info(env, args[0], &bytes, &source.length) != napi_ok ||
      napi_get_typedarray_info(env, args[1], &rows_type, &rows_length, &rows, NULL, NULL) != napi_ok ||
      napi_get_buffer_info(env, args[2], &hashes, &hashes_length) != napi_ok ||
      napi_get_typedarray_info(env, args[3], &numbers_type, &numbers_length, &numbers, NULL, NULL) !=
          napi_ok ||
      napi_get_value_uint32(env, args[4], &updates) != napi_ok ||
      napi_get_typedarray_info(env, args[5], &ends_type, &ends_length, &ends, NULL, NULL) != napi_ok ||
      napi_get_buffer_info(env, args[6], &out, &out_length) != napi_ok ||
      napi_get_value_uint32(env, args[7], &from) != napi_ok || rows_type != napi_int32_array ||
      numbers_type != napi_float64_array || ends_type != napi_int32_array) {
    napi_throw_type_error(env, NULL, "expected encodeRows(bytes, rows, hashes, numbers, count, ends, out, at)");
    return NULL;
  }
  if (numbers_length / update_numbers < updates || ends_length < updates || out_length > INT32_MAX ||
      from > out_length) {
    return refuse(env);
  }
  source.bytes = bytes;
  uint8_t* at = (uint8_t*)out + from;
  const uint8_t* end = (uint8_t*)out + out_length;
  for (uint32_t nth = 0; nth < updates; nth++) {
    const double* own = (const double*)numbers + (size_t)nth * update_numbers;
    if (!(own[0] >= 0 && own[0] < (double)(rows_length / row_length))) return refuse(env);
    size_t length = put_update(&source, (const int32_t*)rows + (size_t)own[0] * row_length, own, at, end);
    if (length == 0) return refuse(env);
    at += length;
    if (own[5] >= 0) {
      size_t of_row = (size_t)own[0] * 2 * hash_bytes;
      if (hashes_length < of_row + 2 * hash_bytes) return refuse(env);
      length = put_keyed((const uint8_t*)hashes + of_row, own, at, end);
      if (length == 0) return refuse(env);
      at += length;
    }
    ((int32_t*)ends)[nth] = (int32_t)(at - (uint8_t*)out);
  }
  return napi_create_uint32(env, (uint32_t)(at - (uint8_t*)out), &result) == napi_ok ? result : NULL;
}

static napi_value encode_queue_states(napi_env env, napi_callback_info info) {
  size_t count = 3, numbers_length, out_length;
  napi_value args[3];
  napi_typedarray_type type;
  void *numbers, *out;
  uint32_t states;
  if (napi_get_cb_info(env, info, &count, args, NULL, NULL) != napi_ok || count != 3 ||
      napi_get_typedarray_info(env, args[0], &type, &numbers_length, &numbers, NULL, NULL) != napi_ok ||
      napi_get_value_uint32(env, args[1], &states) != napi_ok ||
      napi_get_buffer_info(env, args[2], &out, &out_length) != napi_ok || type != napi_float64_array) {
    napi_throw_type_error(env, NULL, "expected encodeQueueStates(numbers, count, out)");
    return NULL;
  }
  if (numbers_length / state_numbers < states || out_length / queue_state_bytes < states) {
    return refuse(env);
  }
  for (uint32_t nth = 0; nth < states; nth++) {
    const double* own = (const double*)numbers + (size_t)nth * state_numbers;
    uint8_t* start = (uint8_t*)out + (size_t)nth * queue_state_bytes;
    if (!put_state(own, start)) return refuse(env);
  }
  return NULL;
}

NAPI_MODULE_INIT() {
  const napi_property_descriptor functions[] = {
      {"encodeRows", NULL, encode_rows, NULL, NULL, NULL, napi_enumerable, NULL},
      {"encodeQueueStates", NULL, encode_queue_states, NULL, NULL, NULL, napi_enumerable, NULL},
  };
  fill_crc_table();
  napi_define_properties(env, exports, sizeof functions / sizeof functions[0], functions);
  return exports;
}
#endif
