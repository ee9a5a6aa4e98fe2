/*
 * Encodes the records of a group, keys and values, one after the other into one Buffer. Plain N-API.
 *
 * src/shard/keys.ts and src/shard/record.ts draw the layouts and decode them. Like there, all numbers are big-endian, a queue
 * is one exact number (its bot, plus 2^52 for the /test/ namespace), and the CRC-32 at the end covers the key and the
 * value before it.
 *
 *   encodeUpdates(texts, keys, numbers, ends, out)
 *       Writes one `u` record for each Buffer of the array `texts`. `keys` has their ordering keys. The Float64Array
 *       `numbers` has five for each: queue, update id, type, time of acceptance in seconds, expiry in milliseconds.
 *       Sets the position after each record in the Int32Array `ends`. `out` needs 39 bytes for each record, the text, and
 *       3 bytes for each UTF-16 code unit of the ordering key.
 *
 *   encodeQueueStates(numbers, count, out)
 *       Writes `count` `s` records of 42 bytes. `numbers` has seven for each: queue, next id, floor, live count, live
 *       bytes, idempotency day, idempotency count.
 *
 * A number that its field cannot hold, and an array or Buffer that is too small, is a RangeError.
 */
#include <node_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { version = 2, crc_bytes = 4 };
enum { queue_id_bytes = 8, update_key_bytes = 1 + queue_id_bytes + 8, update_header_bytes = 14 };
enum { queue_state_bytes = 1 + queue_id_bytes + 33 };
enum { update_numbers = 5, state_numbers = 7, ordering_key_bytes_max = 0xffff };
/* A NUL and a character of UTF-8. An ordering key that leaves less room may have been cut. */
enum { key_slack_bytes = 4 };

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

static napi_value refuse(napi_env env) {
  napi_throw_range_error(env, NULL, "a record does not fit");
  return NULL;
}

/* Writes one record to the bytes before `end`. Returns its length, or 0. */
static size_t put_update(napi_env env, napi_value text, napi_value ordering_key,
                         const double* numbers, uint8_t* at, const uint8_t* end) {
  void* text_bytes;
  size_t text_length, key_length;
  struct record record = {at, at, false};
  if (napi_get_buffer_info(env, text, &text_bytes, &text_length) != napi_ok) return 0;
  size_t fixed = update_key_bytes + update_header_bytes + crc_bytes;
  if ((size_t)(end - at) <= fixed || (size_t)(end - at) - fixed <= text_length) return 0;
  size_t room = (size_t)(end - at) - fixed - text_length;
  *record.at++ = 'u';
  put_queue(&record, numbers[0]);
  put_number(&record, 0, 4);
  put_number(&record, numbers[1], 4);
  *record.at++ = version;
  put_number(&record, numbers[2], 1);
  put_number(&record, numbers[3], 4);
  put_number(&record, numbers[4], 6);
  if (record.is_out_of_range) return 0;
  if (napi_get_value_string_utf8(env, ordering_key, (char*)record.at + 2, room, &key_length) !=
          napi_ok ||
      key_length + key_slack_bytes > room || key_length > ordering_key_bytes_max) {
    return 0;
  }
  put_number(&record, (double)key_length, 2);
  record.at += key_length;
  if (text_length > 0) memcpy(record.at, text_bytes, text_length);
  record.at += text_length;
  put_crc(&record);
  return (size_t)(record.at - record.start);
}

static napi_value encode_updates(napi_env env, napi_callback_info info) {
  size_t count = 5, numbers_length, ends_length, out_length;
  napi_value args[5], text, key;
  napi_typedarray_type numbers_type, ends_type;
  void *numbers, *ends, *out;
  uint32_t updates;
  if (napi_get_cb_info(env, info, &count, args, NULL, NULL) != napi_ok || count != 5 ||
      napi_get_array_length(env, args[0], &updates) != napi_ok ||
      napi_get_typedarray_info(env, args[2], &numbers_type, &numbers_length, &numbers, NULL, NULL) !=
          napi_ok ||
      napi_get_typedarray_info(env, args[3], &ends_type, &ends_length, &ends, NULL, NULL) != napi_ok ||
      napi_get_buffer_info(env, args[4], &out, &out_length) != napi_ok ||
      numbers_type != napi_float64_array || ends_type != napi_int32_array) {
    napi_throw_type_error(env, NULL, "expected encodeUpdates(texts, keys, numbers, ends, out)");
    return NULL;
  }
  if (numbers_length / update_numbers < updates || ends_length < updates || out_length > INT32_MAX) {
    return refuse(env);
  }
  uint8_t* at = out;
  const uint8_t* end = at + out_length;
  for (uint32_t nth = 0; nth < updates; nth++) {
    napi_handle_scope scope;
    if (napi_open_handle_scope(env, &scope) != napi_ok) return refuse(env);
    bool is_read = napi_get_element(env, args[0], nth, &text) == napi_ok &&
                   napi_get_element(env, args[1], nth, &key) == napi_ok;
    const double* own = (const double*)numbers + (size_t)nth * update_numbers;
    size_t length = is_read ? put_update(env, text, key, own, at, end) : 0;
    napi_close_handle_scope(env, scope);
    if (length == 0) return refuse(env);
    at += length;
    ((int32_t*)ends)[nth] = (int32_t)(at - (uint8_t*)out);
  }
  return NULL;
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
    struct record record = {start, start, false};
    *record.at++ = 's';
    put_queue(&record, own[0]);
    *record.at++ = version;
    for (int field = 1; field <= 3; field++) put_number(&record, own[field], 4);
    put_double(&record, own[4]);
    for (int field = 5; field <= 6; field++) put_number(&record, own[field], 4);
    if (record.is_out_of_range) return refuse(env);
    put_crc(&record);
  }
  return NULL;
}

NAPI_MODULE_INIT() {
  const napi_property_descriptor functions[] = {
      {"encodeUpdates", NULL, encode_updates, NULL, NULL, NULL, napi_enumerable, NULL},
      {"encodeQueueStates", NULL, encode_queue_states, NULL, NULL, NULL, napi_enumerable, NULL},
  };
  fill_crc_table();
  napi_define_properties(env, exports, sizeof functions / sizeof functions[0], functions);
  return exports;
}
