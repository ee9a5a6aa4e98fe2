/*
 * A target of libFuzzer: the input is an update. FUZZ_TYPES has the table of types. The text and the ids that
 * are found must be within the update, and must be the same if other bytes surround it.
 */
#include "../../../native-bindings/check_updates.c"
#include <assert.h>
#include <stddef.h>

static struct checker checker = {.nesting_max = 64, .id_bytes_max = 85};

int LLVMFuzzerInitialize(int* count, char*** arguments) {
  (void)count, (void)arguments;
  const char* types = getenv("FUZZ_TYPES");
  assert(types != NULL && strlen(types) + 1 < table_bytes_max);
  strcpy(checker.table, types);
  assert(read_types(&checker) && checker.type_count > 0);
  return 0;
}

static void check_ids(const int32_t* row, const uint8_t* bytes, int paths) {
  for (int index = 0; index < 2; index++) {
    const int32_t* id = row + first_id + 2 * index;
    if (id[0] == -1) assert(id[1] == -1 && index >= paths);
    else assert(id[0] >= 0 && id[1] >= id[0] && id[1] <= row[text_end_column] && id[1] - id[0] <= checker.id_bytes_max);
    for (int32_t at = id[0]; at < id[1]; at++) assert(is_plain(bytes[at]));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
  /* Memory of its own, in which AddressSanitizer sees each read before and after the update. */
  uint8_t* own = malloc(length == 0 ? 1 : length);
  if (length > 0) memcpy(own, bytes, length);
  int32_t row[row_length] = {[update_end] = (int32_t)length};
  int type = check_update(&checker, own, row);
  assert(type == refused || (type >= 0 && type < checker.type_count));
  if (type >= 0) {
    assert(row[text_start] > 0 && row[text_end_column] < row[update_end]);
    assert(own[row[text_start]] == '"' && own[row[text_end_column] - 1] == '}');
    if (row[key_letter] != underived) check_ids(row, own, checker.types[type].path_count);
  }
  free(own);

  uint8_t* within = malloc(length + 2);
  within[0] = '{';
  if (length > 0) memcpy(within + 1, bytes, length);
  within[length + 1] = '}';
  int32_t same[row_length] = {[update_start] = 1, [update_end] = (int32_t)length + 1};
  assert(check_update(&checker, within, same) == type);
  if (type >= 0) {
    assert(same[text_start] == row[text_start] + 1 && same[text_end_column] == row[text_end_column] + 1);
    assert(same[key_letter] == row[key_letter]);
  }
  free(within);
  return 0;
}
