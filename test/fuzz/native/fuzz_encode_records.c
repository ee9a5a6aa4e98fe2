/*
 * A target of libFuzzer: the input is a row, the numbers of its record and of a queue, and the bytes of the row. Nothing is
 * written beyond the room that there is, and the CRC is that of a loop over bits.
 */
#include "../../../native-bindings/encode_records.c"
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int* count, char*** arguments) {
  (void)count, (void)arguments;
  fill_crc_table();
  return 0;
}

static uint32_t slow_crc(const uint8_t* at, const uint8_t* end) {
  uint32_t crc = ~0u;
  for (; at < end; at++) {
    crc ^= *at;
    for (int bit = 0; bit < 8; bit++) crc = (crc & 1) ? 0xedb88320u ^ (crc >> 1) : crc >> 1;
  }
  return ~crc;
}

static void check_crc(const uint8_t* record, size_t length) {
  const uint8_t* end = record + length - crc_bytes;
  uint32_t stored = (uint32_t)end[0] << 24 | (uint32_t)end[1] << 16 | (uint32_t)end[2] << 8 | end[3];
  assert(stored == slow_crc(record, end));
}

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
  struct {
    int32_t row[row_length];
    double numbers[state_numbers];
    uint8_t room;
  } input;
  if (length < sizeof input) return 0;
  memcpy(&input, bytes, sizeof input);
  const struct source source = {bytes + sizeof input, length - sizeof input};
  /* Places near those that exist, which chance would hardly meet. */
  for (int column = text_start; column < second_id + 2; column++) {
    if (column != key_letter) input.row[column] %= (int32_t)source.length + 3;
  }
  size_t room = source.length + 2 * (size_t)input.room;
  uint8_t* out = malloc(room == 0 ? 1 : room);
  size_t written = put_update(&source, input.row, input.numbers, out, out + room);
  assert(written <= room);
  if (written > 0) check_crc(out, written);
  if (length - sizeof input >= 2 * hash_bytes) {
    written = put_keyed(source.bytes, input.numbers, out, out + room);
    assert(written <= room);
    if (written > 0) check_crc(out, written);
  }
  free(out);

  uint8_t* state = malloc(queue_state_bytes);
  if (put_state(input.numbers, state)) check_crc(state, queue_state_bytes);
  free(state);
  return 0;
}
