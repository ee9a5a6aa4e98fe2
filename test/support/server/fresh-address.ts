let lastAddress = 0

/** Returns the address of a client of the internet that has not called before, so that no refusal waits for an earlier one. */
export function freshAddress(): string {
  lastAddress += 1
  return [101, lastAddress >> 16, (lastAddress >> 8) & 255, lastAddress & 255].join('.')
}
