/**
 * Where a text is no update, for people who see its lines: the server counts bytes, because it reads bytes.
 */

/** For example `expected a key or "}" at byte 13, got the end: more`. */
const atByte = / at byte (\d{1,10})(?:, got (.[^:.]{0,40}))?/

/** The tokens of JSON in words; what is not here is understood as it is. */
const words: Readonly<Record<string, string>> = {
  ',': 'a comma',
  ':': 'a colon',
  'the end': 'the end of the text',
  'byte 9': 'a tab',
  'byte 10': 'the end of the line',
  'byte 13': 'the end of the line',
}

/**
 * Says the place in a message of the server by its line and column, such as
 * `update: line 2, column 5: expected a comma or "}", found the end of the text`.
 *
 * @param sent - the text that the message is about
 * @returns the message itself if it names no place
 */
export function placeText(message: string, sent: string): string {
  const [all, byte = '', got] = atByte.exec(message) ?? []
  const start = message.lastIndexOf('expected ', message.indexOf(all ?? ''))
  if (all === undefined || start < 0) return message
  const before = decoder.decode(new TextEncoder().encode(sent).subarray(0, Number(byte)))
  const lines = before.split(/\r\n|\n|\r/)
  // An emoji is one character to a reader.
  const column = Array.from(lines.at(-1) ?? '').length + 1
  const found = got === undefined ? '' : `, found ${words[got] ?? got}`
  const wanted = message
    .slice(start, message.indexOf(all))
    .replace(/,$/, '')
    .replaceAll('","', 'a comma')
    .replaceAll('":"', 'a colon')
  const rest = message.slice(message.indexOf(all) + all.length)
  return `${message.slice(0, start)}line ${lines.length}, column ${column}: ${wanted}${found}${rest}`
}

const decoder = new TextDecoder()
