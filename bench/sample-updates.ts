/**
 * Updates as a platform would push them, 300 bytes each, from a seed: the same for every contestant. Names and texts
 * vary, so that they compress about as well as real JSON.
 */
const letters = 'abcdefghijklmnopqrstuvwxyz'
export const updateBytes = 300

/** A number generator that is good enough for sample texts (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export function sampleUpdate(random: () => number, chatId: number, bytes = updateBytes): string {
  const user = 1_000_000 + Math.floor(random() * 1e9)
  const name = word(random, 6)
  const head =
    `{"message":{"message_id":${1 + Math.floor(random() * 1e6)},"from":{"id":${user},"is_bot":false,` +
    `"first_name":"${name}","username":"${name}_${word(random, 4)}","language_code":"en"},` +
    `"chat":{"id":${chatId},"first_name":"${name}","type":"private"},"date":1760000000,"text":"`
  const end = '"}}'
  let text = ''
  while (head.length + text.length + end.length < bytes) text += `${word(random, 5)} `
  return head + text.slice(0, bytes - head.length - end.length) + end
}

function word(random: () => number, length: number): string {
  let made = ''
  for (let index = 0; index < length; index++) made += letters[Math.floor(random() * 26)]
  return made
}
