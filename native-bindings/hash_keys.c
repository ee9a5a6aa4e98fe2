/*
 * Hashes idempotency keys and the texts of their updates, by the OpenSSL that Node.js brings and lets addons use. Plain N-API.
 *
 *   hashKeys(bytes, rows, count, out) -> how many keys are left to JavaScript
 *       For each of `count` rows of the Int32Array `rows` (src/shard/update-rows.ts) whose update is valid and that has an
 *       idempotency key, writes the first 16 bytes of SHA-256 of the key, and then those of the text, to the place of the row
 *       in the Buffer `out`, which has 32 bytes for each. The ranges are places in the Buffer `bytes`. The hash of a key that
 *       is no range is left out.
 *
 * The functions of OpenSSL are searched at the start, so that the addon needs no certain version of it. If they are missing,
 * as in a Node.js without OpenSSL, there is no `hashKeys`.
 */
#include <dlfcn.h>
#include <node_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { row_length = 16, hash_bytes = 16, digest_bytes = 32 };
/* The columns of a row. */
enum { type_column = 4, text_start, idempotency_key = 12 };

struct hasher {
  void* context;
  void* sha256;
  void* (*context_new)(void);
  void (*context_free)(void*);
  void* (*fetch)(void* library, const char* name, const char* properties);
  void (*sha256_free)(void*);
  int (*init)(void* context, const void* type, const void* parameters);
  int (*update)(void* context, const void* bytes, size_t length);
  int (*final)(void* context, uint8_t* digest, unsigned* length);
};

static bool find(const char* name, void* function) {
  void* found = dlsym(RTLD_DEFAULT, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

static void free_hasher(napi_env env, void* data, void* hint) {
  (void)env, (void)hint;
  struct hasher* hasher = data;
  if (hasher->context != NULL) hasher->context_free(hasher->context);
  if (hasher->sha256 != NULL) hasher->sha256_free(hasher->sha256);
  free(hasher);
}

static struct hasher* new_hasher(void) {
  struct hasher* hasher = calloc(1, sizeof *hasher);
  if (hasher == NULL) return NULL;
  if (find("EVP_MD_CTX_new", &hasher->context_new) && find("EVP_MD_CTX_free", &hasher->context_free) &&
      find("EVP_MD_fetch", &hasher->fetch) && find("EVP_MD_free", &hasher->sha256_free) &&
      find("EVP_DigestInit_ex2", &hasher->init) && find("EVP_DigestUpdate", &hasher->update) &&
      find("EVP_DigestFinal_ex", &hasher->final)) {
    hasher->context = hasher->context_new();
    hasher->sha256 = hasher->fetch(NULL, "SHA256", NULL);
  }
  if (hasher->context != NULL && hasher->sha256 != NULL) return hasher;
  free_hasher(NULL, hasher, NULL);
  return NULL;
}

/* Writes the hash of a range. Returns false if the range is not within the bytes, or OpenSSL fails. */
static bool put_hash(const struct hasher* hasher, const uint8_t* bytes, size_t length, const int32_t* range, uint8_t* out) {
  uint8_t digest[digest_bytes];
  if (range[0] < 0 || range[1] < range[0] || (size_t)range[1] > length ||
      hasher->init(hasher->context, hasher->sha256, NULL) != 1 ||
      hasher->update(hasher->context, bytes + range[0], (size_t)(range[1] - range[0])) != 1 ||
      hasher->final(hasher->context, digest, NULL) != 1) {
    return false;
  }
  memcpy(out, digest, hash_bytes);
  return true;
}

static napi_value hash_keys(napi_env env, napi_callback_info info) {
  size_t count = 4, length, row_ints, out_length;
  napi_value args[4], result;
  void *data, *bytes, *rows, *out;
  napi_typedarray_type type;
  uint32_t updates, left = 0;
  if (napi_get_cb_info(env, info, &count, args, NULL, &data) != napi_ok || count != 4 ||
      napi_get_buffer_info(env, args[0], &bytes, &length) != napi_ok ||
      napi_get_typedarray_info(env, args[1], &type, &row_ints, &rows, NULL, NULL) != napi_ok ||
      type != napi_int32_array || napi_get_value_uint32(env, args[2], &updates) != napi_ok ||
      napi_get_buffer_info(env, args[3], &out, &out_length) != napi_ok || updates > row_ints / row_length ||
      updates > out_length / (2 * hash_bytes)) {
    napi_throw_type_error(env, NULL, "expected hashKeys(bytes, rows, count, out)");
    return NULL;
  }
  for (uint32_t nth = 0; nth < updates; nth++) {
    const int32_t *row = (const int32_t*)rows + (size_t)nth * row_length, *key = row + idempotency_key;
    uint8_t* place = (uint8_t*)out + (size_t)nth * 2 * hash_bytes;
    if (row[type_column] < 0 || key[0] == 0) continue;
    if (key[0] < 0) left++;
    if ((key[0] > 0 && !put_hash(data, bytes, length, key, place)) ||
        !put_hash(data, bytes, length, row + text_start, place + hash_bytes)) {
      napi_throw_range_error(env, NULL, "a key cannot be hashed");
      return NULL;
    }
  }
  return napi_create_uint32(env, left, &result) == napi_ok ? result : NULL;
}

NAPI_MODULE_INIT() {
  napi_value function;
  struct hasher* hasher = new_hasher();
  if (hasher == NULL) return exports;
  if (napi_create_function(env, "hashKeys", NAPI_AUTO_LENGTH, hash_keys, hasher, &function) != napi_ok ||
      napi_add_finalizer(env, function, hasher, free_hasher, NULL, NULL) != napi_ok) {
    free_hasher(env, hasher, NULL);
    return NULL;
  }
  napi_set_named_property(env, exports, "hashKeys", function);
  return exports;
}
