/* A target of libFuzzer: the input is a chunk of a stream. The pairs that are found must be within it, in order. */
#include "../../../native-bindings/split_pairs.c"
#include <assert.h>
#include <stddef.h>

enum { pairs_max = 5 };

static void check_range(const int32_t* range, int32_t from, int32_t to) {
  assert(range[0] >= from && range[1] >= range[0] && range[1] <= to);
}

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
  const struct limits limits = {150, 300, 100, 4503599627370495, 256, 256, 2592000, 1};
  int32_t rows[pairs_max * row_length], from = 0, before = 0;
  double bots[pairs_max];
  for (;;) {
    size_t count = take_pairs(bytes, length, &limits, &from, rows, bots, pairs_max);
    for (size_t nth = 0; nth < count; nth++) {
      const int32_t* row = rows + nth * row_length;
      check_range(row + start_column, before, (int32_t)length);
      check_range(row + update_start, row[header_end] + 1, (int32_t)length - 1);
      before = row[end_column] + 1;
      if (isnan(bots[nth])) continue;
      assert(bots[nth] >= limits.bot_min && bots[nth] <= limits.bot_max && bots[nth] == trunc(bots[nth]));
      assert(row[ttl_column] >= 0 && row[ttl_column] <= limits.ttl_max);
      if ((row[flags_column] & traced_flag) != 0) {
        int32_t place = row[start_column] + (row[flags_column] >> trace_shift);
        const int32_t range[2] = {place, place + 55};
        check_range(range, row[start_column], row[header_end]);
      }
      if (row[key_letter] != 0) check_range(row + first_id, row[start_column], row[header_end]);
      if (row[idempotency_key] != 0) check_range(row + idempotency_key, row[start_column], row[header_end]);
    }
    assert(from >= before && (size_t)from <= length);
    if (count < pairs_max) return 0;
  }
}
