/** What strerror says, in the words of LevelDB and of Node, which keep nothing else of it in common. */
const texts = /no space left on device|disk quota exceeded/i

/** Returns whether an error, or one of its causes, says that the disk is full or that a quota is used up. */
export function isOutOfRoom(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (texts.test(each.message)) return true
  }
  return false
}
