/**
 * Finds and mends the request line of a request whose target has bytes above 0x7f, as shells and old clients send them
 * (`?text=Привет`). Such a byte is no URL, and llhttp refuses it in each of its lenient modes; it means the same as its
 * percent-encoding. This is pure. src/admission/connections/raw-targets.ts has the rest.
 */

/**
 * The methods that this server has. None ends with another method that the parser knows, nor is any the end of one, except
 * for PROPPATCH. So the bytes before a method cannot belong to it, nor bytes of a body make another method of it.
 */
const methods = new Set(['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH'])
const longestMethod = 7
const endOfAnother = 'PATCH'

const lineFeed = 0x0a
const carriageReturn = 0x0d
const space = 0x20
const asciiMax = 0x7f
const hex = '0123456789ABCDEF'

/**
 * Returns where the request line begins whose target the parser was reading.
 *
 * @param packet - the bytes it was given
 * @param failedAt - the byte of the target that it refused
 * @returns `not raw` if that byte is not above 0x7f; `unknown` if the line may have begun in an earlier packet
 */
export function requestLineStart(packet: Buffer, failedAt: number): number | 'not raw' | 'unknown' {
  if (!((packet[failedAt] ?? 0) > asciiMax)) return 'not raw'
  // The parser is within the target, so these are the bytes of the target, the blanks before it and the method.
  let methodEnd = packet.lastIndexOf(space, failedAt) + 1
  while (methodEnd > 0 && packet[methodEnd - 1] === space) methodEnd--
  let start = methodEnd
  while (start > 0 && methodEnd - start <= longestMethod && isTokenByte(packet[start - 1])) start--
  const method = packet.toString('latin1', start, methodEnd)
  return methods.has(method) && (start > 0 || method !== endOfAnother) ? start : 'unknown'
}

/** Returns the position after the first line end from `start` on. */
export function lineEndIn(bytes: Buffer, start: number): number | undefined {
  const at = bytes.indexOf(lineFeed, start)
  return at < 0 ? undefined : at + 1
}

/** Returns a request line with the bytes above 0x7f of its target percent-encoded. All other bytes stay as they are. */
export function withEncodedTarget(line: Buffer): Buffer {
  let targetStart = line.indexOf(space)
  while (line[targetStart] === space) targetStart++
  let targetEnd = targetStart
  while (targetEnd < line.length && !endsTarget(line[targetEnd])) targetEnd++
  const target = line.subarray(targetStart, targetEnd)
  return Buffer.concat([
    line.subarray(0, targetStart),
    Buffer.from(encoded(target), 'latin1'),
    line.subarray(targetEnd),
  ])
}

function encoded(target: Buffer): string {
  let text = ''
  for (const byte of target) {
    text +=
      byte > asciiMax
        ? `%${hex.charAt(byte >> 4)}${hex.charAt(byte & 15)}`
        : String.fromCharCode(byte)
  }
  return text
}

function endsTarget(byte: number | undefined): boolean {
  return byte === space || byte === carriageReturn || byte === lineFeed
}

/** Whether the parser could take it for a part of a method. */
function isTokenByte(byte: number | undefined): boolean {
  if (byte === undefined) return false
  return (byte >= 0x41 && byte <= 0x5a) || byte === 0x2d
}
