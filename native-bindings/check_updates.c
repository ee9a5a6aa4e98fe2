/*
 * Checks updates and finds the ids from which their ordering keys are derived. Plain N-API.
 *
 *   updateChecker(types, nestingMax, idBytesMax) -> check
 *       `types` has one line for each update type, in the order of their numbers: the letter of its ordering keys, its name
 *       and the paths of the one or two ids in its payload, if it has any, such as `b business_message business_connection_id chat.id`. All
 *       texts are ASCII.
 *
 *   check(bytes, rows, count) -> how many rows need JavaScript, for the words of a refusal or for a key
 *       Checks those of `count` updates whose type is -2. They are ranges of the Buffer `bytes`, and each has a row of the
 *       Int32Array `rows`, which src/shard/update-rows.ts draws. The check reads the columns 2 and 3, the range of the update,
 *       and writes these:
 *
 *           4 type                           its number; -3 if the update is not valid: the columns below have no meaning then
 *           5 text start | 6 text end        the text between the outer braces without surrounding white space
 *           7 key letter                     not 0 if the producer has chosen a key, which stays; otherwise the letter of the
 *                                            type, 0 if there is no id, or -2 if JavaScript derives the key: the columns below
 *                                            have no meaning then
 *           8 id start | 9 id end            the id at the first path, as digits or the content of a string; or empty
 *           10 id start | 11 id end          the id at the second path; -1 | -1 if the type has only one
 *
 * The check decides alone what is valid: src/queue/check/why-refused.ts finds the words for what it has refused. It is one pass
 * without recursion and without allocation. It reads each byte once, an id twice, and nothing outside the range.
 * src/queue/check/ordering-key.ts derives the keys from ids with escapes or other characters than ASCII, numbers that are not whole,
 * ids of more than `idBytesMax` bytes, and payloads in which a key that could lead to an id has escapes or comes twice.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { types_max = 64, paths_max = 2, names_max = 4, table_bytes_max = 8192, row_length = 16 };
/* The columns of a row that the check reads and writes. Ids have two each. */
enum { update_start = 2, update_end, type_column, text_start, text_end_column, key_letter, first_id };
enum { unchecked = -2, refused = -3 };
/* In place of the letter of a key. */
enum { underived = -2 };
/* One bit for each open container. */
enum { nesting_limit = 64 };
/* The payload of an update is the second level: it is inside the outer object. */
enum { payload_depth = 2 };

struct name {
  const char* bytes;
  size_t length;
};

struct path {
  int count;
  struct name names[names_max];
};

struct type {
  char letter;
  struct name name;
  int path_count;
  struct path paths[paths_max];
};

struct checker {
  int nesting_max;
  int id_bytes_max;
  int type_count;
  struct type types[types_max];
  /* The bytes of all names. */
  char table[table_bytes_max];
};

/* The search for one id. The last member with a name decides, even if it leads to no id: JavaScript finds it if there are two. */
struct search {
  const struct path* path;
  /* How many of the objects on the path are open. Their members are compared with the name of this number. */
  int nth;
  /* How many names of the path were found. */
  int found;
  const uint8_t* start;
  const uint8_t* end;
};

/* An update that is being checked. */
struct scan {
  const uint8_t* end;
  int id_bytes_max;
  bool is_unusual;
  struct search searches[paths_max];
};

static const uint8_t* after_space(const uint8_t* at, const uint8_t* end) {
  while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) at++;
  return at;
}

static bool is_plain(uint8_t byte) {
  return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* Returns the first byte that is a quote, a backslash, a control character or not ASCII, or the end. */
static const uint8_t* after_plain(const uint8_t* at, const uint8_t* end) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  const uint64_t ones = 0x0101010101010101u;
  while (end - at >= 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    uint64_t quotes = word ^ (ones * '"'), backslashes = word ^ (ones * '\\');
    /* The lowest bit that is set is exact. Those above it may be set by a borrow. */
    uint64_t found = (((quotes - ones) & ~quotes) | ((backslashes - ones) & ~backslashes) |
                      ((word - ones * 0x20) & ~word) | word) & (ones * 0x80);
    if (found != 0) return at + (__builtin_ctzll(found) >> 3);
    at += 8;
  }
#endif
  while (at < end && is_plain(*at)) at++;
  return at;
}

/* Returns the code unit of the escape \uXXXX at `at`, or -1. */
static int code_unit(const uint8_t* at, const uint8_t* end) {
  if (end - at < 6 || at[0] != '\\' || at[1] != 'u') return -1;
  int unit = 0;
  for (int nth = 2; nth < 6; nth++) {
    int letter = at[nth] | 0x20;
    if (at[nth] >= '0' && at[nth] <= '9') unit = unit << 4 | (at[nth] - '0');
    else if (letter >= 'a' && letter <= 'f') unit = unit << 4 | (letter - 'a' + 10);
    else return -1;
  }
  return unit;
}

static const uint8_t* after_escape(const uint8_t* at, const uint8_t* end) {
  if (end - at < 2) return NULL;
  if (at[1] != 'u') return at[1] != 0 && strchr("\"\\/bfnrt", at[1]) != NULL ? at + 2 : NULL;
  int unit = code_unit(at, end);
  if (unit < 0) return NULL;
  if (unit < 0xd800 || unit > 0xdfff) return at + 6;
  int low = unit < 0xdc00 ? code_unit(at + 6, end) : -1;
  return low >= 0xdc00 && low <= 0xdfff ? at + 12 : NULL;
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

/*
 * Skips characters that are not ASCII and single bytes between them, such as spaces. Word by word, text in Cyrillic would
 * take three times as long.
 */
static const uint8_t* after_characters(const uint8_t* at, const uint8_t* end) {
  do {
    bool is_pair = *at >= 0xc2 && *at < 0xe0 && end - at > 1 && (at[1] & 0xc0) == 0x80;
    at = is_pair ? at + 2 : after_character(at, end);
    if (at != NULL && at < end && is_plain(*at)) at++;
  } while (at != NULL && at < end && *at >= 0x80);
  return at;
}

/* `at` is after the opening quote. Returns the position after the closing one, or NULL. */
static const uint8_t* after_string(const uint8_t* at, const uint8_t* end) {
  for (;;) {
    at = after_plain(at, end);
    if (at == end) return NULL;
    if (*at == '"') return at + 1;
    at = *at == '\\' ? after_escape(at, end) : after_characters(at, end);
    if (at == NULL) return NULL;
  }
}

static const uint8_t* after_digits(const uint8_t* at, const uint8_t* end) {
  while (at < end && *at >= '0' && *at <= '9') at++;
  return at;
}

static const uint8_t* after_number(const uint8_t* at, const uint8_t* end) {
  const uint8_t* first = *at == '-' ? at + 1 : at;
  at = after_digits(first, end);
  if (at == first || (*first == '0' && at > first + 1)) return NULL;
  if (at < end && *at == '.') {
    first = at + 1;
    at = after_digits(first, end);
    if (at == first) return NULL;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    first = at + 1;
    if (first < end && (*first == '+' || *first == '-')) first++;
    at = after_digits(first, end);
    if (at == first) return NULL;
  }
  return at;
}

static const uint8_t* after_literal(const uint8_t* at, const uint8_t* end, const char* literal) {
  size_t length = strlen(literal);
  return (size_t)(end - at) >= length && memcmp(at, literal, length) == 0 ? at + length : NULL;
}

static const uint8_t* after_scalar(const uint8_t* at, const uint8_t* end) {
  switch (*at) {
    case '"':
      return after_string(at + 1, end);
    case 't':
      return after_literal(at, end, "true");
    case 'f':
      return after_literal(at, end, "false");
    case 'n':
      return after_literal(at, end, "null");
    default:
      return after_number(at, end);
  }
}

static bool is_name(const struct name* name, const uint8_t* bytes, size_t length) {
  return length == name->length && memcmp(bytes, name->bytes, length) == 0;
}

/* `at` is at the value at the end of a path. A value that is not valid is noticed later. */
static void take_id(struct scan* scan, struct search* search, const uint8_t* at) {
  const uint8_t* end;
  bool is_usual;
  if (*at == '"') {
    at++;
    end = after_plain(at, scan->end);
    is_usual = end < scan->end && *end == '"';
  } else if (*at == '-' || (*at >= '0' && *at <= '9')) {
    end = after_digits(at + 1, scan->end);
    is_usual = end < scan->end && *end != '.' && *end != 'e' && *end != 'E';
  } else {
    return;
  }
  if (!is_usual || end - at > scan->id_bytes_max) {
    scan->is_unusual = true;
    return;
  }
  search->start = at;
  search->end = end;
}

/* Compares a key of the object at `depth`, whose value begins at `value`, with the names that lead to ids. */
static void follow(struct scan* scan, int depth, const struct name* key, const uint8_t* value) {
  for (int index = 0; index < paths_max; index++) {
    struct search* search = &scan->searches[index];
    if (search->path == NULL || payload_depth + search->nth != depth) continue;
    const struct name* name = &search->path->names[search->nth];
    if (!is_name(name, (const uint8_t*)key->bytes, key->length)) {
      /* With escapes, it may be the same key. */
      if (key->length > name->length && memchr(key->bytes, '\\', key->length) != NULL) {
        scan->is_unusual = true;
      }
      continue;
    }
    if (search->nth < search->found) {
      scan->is_unusual = true;
      continue;
    }
    search->found++;
    if (search->found == search->path->count) take_id(scan, search, value);
    else if (*value == '{') search->nth++;
  }
}

static bool is_searched(const struct scan* scan, int depth) {
  return (scan->searches[0].path != NULL && payload_depth + scan->searches[0].nth == depth) ||
         (scan->searches[1].path != NULL && payload_depth + scan->searches[1].nth == depth);
}

/* Returns the first byte of the value of the member whose key should be at `at`, or NULL. */
static const uint8_t* value_of_member(struct scan* scan, const uint8_t* at, int depth) {
  const uint8_t* end = scan->end;
  if (*at != '"') return NULL;
  const uint8_t* key_end = after_string(at + 1, end);
  if (key_end == NULL) return NULL;
  const uint8_t* value = after_space(key_end, end);
  if (value == end || *value != ':') return NULL;
  value = after_space(value + 1, end);
  if (value == end) return NULL;
  if (is_searched(scan, depth)) {
    const struct name key = {(const char*)at + 1, (size_t)(key_end - at - 2)};
    follow(scan, depth, &key, value);
  }
  return value;
}

/* `at` is after the brace that opens the payload. Returns the position after the one that closes it, or NULL. */
static const uint8_t* after_payload(struct scan* scan, const uint8_t* at, int nesting_max) {
  const uint8_t* end = scan->end;
  /* The lowest bit says whether the innermost container is an object; the next bit is for the one around it. */
  uint64_t objects = 1;
  int depth = payload_depth;
  bool is_first = true;
  for (;;) {
    at = after_space(at, end);
    if (at == end) return NULL;
    if (!is_first || *at != ((objects & 1) ? '}' : ']')) {
      if (objects & 1) at = value_of_member(scan, at, depth);
      if (at == NULL) return NULL;
      if (*at == '{' || *at == '[') {
        if (depth == nesting_max) return NULL;
        depth++;
        objects = objects << 1 | (*at == '{');
        is_first = true;
        at++;
        continue;
      }
      at = after_scalar(at, end);
      if (at == NULL) return NULL;
    }
    is_first = false;
    for (;;) {
      at = after_space(at, end);
      if (at == end) return NULL;
      if (*at == ',') break;
      if (*at != ((objects & 1) ? '}' : ']')) return NULL;
      at++;
      if (depth == payload_depth) return at;
      for (int index = 0; index < paths_max; index++) {
        struct search* search = &scan->searches[index];
        if (search->nth > 0 && payload_depth + search->nth == depth) search->nth--;
      }
      depth--;
      objects >>= 1;
    }
    at++;
  }
}

/* `at` is after the quote before the name. Returns the number of the type, or -1. */
static int type_at(const struct checker* checker, const uint8_t* at, const uint8_t* end) {
  for (int number = 0; number < checker->type_count; number++) {
    const struct name* name = &checker->types[number].name;
    if ((size_t)(end - at) > name->length && at[name->length] == '"' &&
        memcmp(at, name->bytes, name->length) == 0) {
      return number;
    }
  }
  return -1;
}

static void write_ids(const struct scan* scan, const struct type* type, const uint8_t* bytes, int32_t* row) {
  bool is_found = false;
  for (int index = 0; index < paths_max; index++) {
    const struct search* search = &scan->searches[index];
    int32_t* id = row + first_id + 2 * index;
    if (search->start != NULL) {
      is_found |= search->end > search->start;
      id[0] = (int32_t)(search->start - bytes);
      id[1] = (int32_t)(search->end - bytes);
    } else {
      id[0] = id[1] = index < type->path_count ? 0 : -1;
    }
  }
  row[key_letter] = is_found ? type->letter : 0;
}

/* Checks one update and fills its row; returns the number of its type, or -3. */
static int check_update(const struct checker* checker, const uint8_t* bytes, int32_t* row) {
  const uint8_t* end = bytes + row[update_end];
  const uint8_t* at = after_space(bytes + row[update_start], end);
  if (at == end || *at != '{') return refused;
  const uint8_t* text = after_space(at + 1, end);
  if (text == end || *text != '"') return refused;
  int number = type_at(checker, text + 1, end);
  if (number == -1) return refused;
  const struct type* type = &checker->types[number];
  at = after_space(text + type->name.length + 2, end);
  if (at == end || *at != ':') return refused;
  at = after_space(at + 1, end);
  if (at == end || *at != '{') return refused;
  bool has_key = row[key_letter] != 0;
  struct scan scan = {.end = end, .id_bytes_max = checker->id_bytes_max};
  for (int index = 0; index < type->path_count && !has_key; index++) {
    scan.searches[index].path = &type->paths[index];
  }
  const uint8_t* text_end = after_payload(&scan, at + 1, checker->nesting_max);
  if (text_end == NULL) return refused;
  at = after_space(text_end, end);
  if (at == end || *at != '}' || after_space(at + 1, end) != end) return refused;
  row[text_start] = (int32_t)(text - bytes);
  row[text_end_column] = (int32_t)(text_end - bytes);
  if (scan.is_unusual) row[key_letter] = underived;
  else if (!has_key) write_ids(&scan, type, bytes, row);
  return number;
}

static struct name name_of(const char* text) {
  return (struct name){text, strlen(text)};
}

/* Cuts the table into names. Returns false if it has more parts than there is room for. */
static bool read_types(struct checker* checker) {
  char *lines, *words, *names;
  for (char* line = strtok_r(checker->table, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
    if (checker->type_count == types_max) return false;
    struct type* type = &checker->types[checker->type_count++];
    char* word = strtok_r(line, " ", &words);
    if (word == NULL) return false;
    type->letter = *word;
    word = strtok_r(NULL, " ", &words);
    if (word == NULL) return false;
    type->name = name_of(word);
    for (word = strtok_r(NULL, " ", &words); word; word = strtok_r(NULL, " ", &words)) {
      if (type->path_count == paths_max) return false;
      struct path* path = &type->paths[type->path_count++];
      for (char* name = strtok_r(word, ".", &names); name; name = strtok_r(NULL, ".", &names)) {
        if (path->count == names_max) return false;
        path->names[path->count++] = name_of(name);
      }
    }
  }
  return true;
}

/* What follows is for Node.js alone. test/fuzz/native compiles the rest without it. */
#ifndef WITHOUT_NODE
#include <node_api.h>

static napi_value check(napi_env env, napi_callback_info info) {
  size_t count = 3, length, row_ints;
  napi_value args[3];
  void *data, *bytes, *rows;
  napi_typedarray_type type;
  uint32_t updates;
  if (napi_get_cb_info(env, info, &count, args, NULL, &data) != napi_ok || count != 3 ||
      napi_get_buffer_info(env, args[0], &bytes, &length) != napi_ok ||
      napi_get_typedarray_info(env, args[1], &type, &row_ints, &rows, NULL, NULL) != napi_ok ||
      type != napi_int32_array || napi_get_value_uint32(env, args[2], &updates) != napi_ok ||
      updates > row_ints / row_length) {
    napi_throw_type_error(env, NULL, "expected check(bytes, rows, count)");
    return NULL;
  }
  uint32_t left = 0;
  for (uint32_t nth = 0; nth < updates; nth++) {
    int32_t* row = (int32_t*)rows + (size_t)nth * row_length;
    if (row[type_column] != unchecked) continue;
    if (row[update_start] < 0 || row[update_end] < row[update_start] || (size_t)row[update_end] > length) {
      napi_throw_range_error(env, NULL, "an update is not within the bytes");
      return NULL;
    }
    row[type_column] = check_update(data, bytes, row);
    if (row[type_column] == refused || row[key_letter] == underived) left++;
  }
  napi_value result;
  return napi_create_uint32(env, left, &result) == napi_ok ? result : NULL;
}

static void free_checker(napi_env env, void* checker, void* hint) {
  (void)env, (void)hint;
  free(checker);
}

static napi_value update_checker(napi_env env, napi_callback_info info) {
  size_t count = 3, length;
  napi_value args[3], function;
  struct checker* checker = calloc(1, sizeof *checker);
  if (checker == NULL || napi_get_cb_info(env, info, &count, args, NULL, NULL) != napi_ok || count != 3 ||
      napi_get_value_string_utf8(env, args[0], checker->table, table_bytes_max, &length) != napi_ok ||
      length + 1 >= table_bytes_max || !read_types(checker) ||
      napi_get_value_int32(env, args[1], &checker->nesting_max) != napi_ok ||
      checker->nesting_max < payload_depth || checker->nesting_max > nesting_limit ||
      napi_get_value_int32(env, args[2], &checker->id_bytes_max) != napi_ok) {
    free(checker);
    napi_throw_type_error(env, NULL, "expected updateChecker(types, nestingMax, idBytesMax)");
    return NULL;
  }
  if (napi_create_function(env, "check", NAPI_AUTO_LENGTH, check, checker, &function) != napi_ok ||
      napi_add_finalizer(env, function, checker, free_checker, NULL, NULL) != napi_ok) {
    free(checker);
    return NULL;
  }
  return function;
}

NAPI_MODULE_INIT() {
  napi_value function;
  if (napi_create_function(env, "updateChecker", NAPI_AUTO_LENGTH, update_checker, NULL, &function) ==
      napi_ok) {
    napi_set_named_property(env, exports, "updateChecker", function);
  }
  return exports;
}
#endif
