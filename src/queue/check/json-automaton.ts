/**
 * The grammar of JSON (RFC 8259, exactly what JSON.parse accepts) as one table: next = transitions[state << 8 | byte].
 *
 * The table covers strings, numbers and literals completely, so a checker spends one load per byte on them. A byte that
 * needs the stack of open containers leads to an action: a number >= `actionFirst`, which never becomes the current
 * state. Escaped surrogates are part of this grammar, because a lone one (`"\ud800"`) is not valid text in any client
 * although JSON.parse accepts it. Raw UTF-8 is not checked here; `buffer.isUtf8` does that faster.
 */

const names: string[] = []
const byName = new Map<string, number>()

function state(name: string): number {
  const known = byName.get(name)
  if (known !== undefined) return known
  byName.set(name, names.length)
  return names.push(name) - 1
}

// The two strings come first, so `state <= keyString` means that a string is being read. The names are shown to
// producers: 'expected <name> at byte N'.
/** Inside a string value. */
export const valueString = state('the rest of a string without control characters')
/** Inside the string of a key. */
export const keyString = state('the rest of a key without control characters')
/** Before a value. */
export const value = state('a value')
/** After "[": before a value or the end of the array. */
export const firstElement = state('a value or "]"')
/** After "{": before a key or the end of the object. */
export const firstKey = state('a key or "}"')
/** After a comma in an object: before a key. */
export const key = state('a key')
const colon = state('":"')
/** After a complete value. */
export const afterValue = state('"," or the end of the object or array')

const edges: [from: number, bytes: string, to: number][] = []

const space = ' \t\n\r'
const digits = '0123456789'
const hex = '0123456789abcdefABCDEF'

function addStructure(): void {
  for (const at of [value, firstElement, firstKey, key, colon, afterValue])
    edges.push([at, space, at])
  for (const at of [firstKey, key]) edges.push([at, '"', keyString])
  edges.push([colon, ':', value])
}

/** Adds a string. Keys and values have separate inner states because they continue differently. */
function addString(inside: number, end: number): void {
  const of = inside === keyString ? ' in a key' : ' in a string'
  const escape = state(`an escape${of}`)
  edges.push([inside, '"', end], [inside, '\\', escape], [escape, '"\\/bfnrt', inside])
  const [first, second, third, fourth] = [digit(1, of), digit(2, of), digit(3, of), digit(4, of)]
  const afterD = state(`hexadecimal digit 2 of \\u, without a lone low surrogate,${of}`)
  edges.push([escape, 'u', first], [first, hex, second], [first, 'dD', afterD])
  edges.push([second, hex, third], [third, hex, fourth], [fourth, hex, inside])
  edges.push([afterD, '01234567', third])
  const highThird = state(`hexadecimal digit 3 of a high surrogate${of}`)
  const highFourth = state(`hexadecimal digit 4 of a high surrogate${of}`)
  const low = 'a low surrogate escape after a high one'
  const lowStart = state(`${low}${of}`)
  const lowU = state(`${low} (its "u")${of}`)
  const lowFirst = state(`${low} (its "d")${of}`)
  const lowSecond = state(`${low} (its "c" to "f")${of}`)
  edges.push(
    [afterD, '89abAB', highThird],
    [highThird, hex, highFourth],
    [highFourth, hex, lowStart],
  )
  edges.push([lowStart, '\\', lowU], [lowU, 'u', lowFirst], [lowFirst, 'dD', lowSecond])
  edges.push([lowSecond, 'cdefCDEF', third])
}

function digit(nth: number, of: string): number {
  return state(`hexadecimal digit ${nth} of \\u${of}`)
}

const numberStarts: [bytes: string, to: number][] = []

function addNumbers(ends: (at: number) => void): void {
  const minus = state('a digit after "-"')
  const zero = state('the end of a number or its fraction after "0"')
  const integer = state('more of a number or its end')
  const dot = state('a digit after "."')
  const fraction = state('more of a fraction or its end')
  const exponent = state('a digit or sign after "e"')
  const sign = state("a digit after an exponent's sign")
  const exponentDigits = state('more of an exponent or its end')
  numberStarts.push(['-', minus], ['0', zero], ['123456789', integer])
  edges.push([minus, '0', zero], [minus, '123456789', integer], [integer, digits, integer])
  for (const at of [zero, integer]) edges.push([at, '.', dot], [at, 'eE', exponent])
  edges.push([dot, digits, fraction], [fraction, digits, fraction], [fraction, 'eE', exponent])
  edges.push([exponent, '+-', sign], [exponent, digits, exponentDigits])
  edges.push([sign, digits, exponentDigits], [exponentDigits, digits, exponentDigits])
  for (const at of [zero, integer, fraction, exponentDigits]) ends(at)
}

const literalStarts: [bytes: string, to: number][] = []

function addLiteral(literal: string): void {
  let next = afterValue
  for (let length = literal.length - 1; length >= 1; length--) {
    const at = state(`the rest of "${literal}" after "${literal.slice(0, length)}"`)
    edges.push([at, literal.charAt(length), next])
    next = at
  }
  literalStarts.push([literal.charAt(0), next])
}

const endsOfNumbers: number[] = []
addStructure()
addString(keyString, colon)
addString(valueString, afterValue)
addNumbers((at) => endsOfNumbers.push(at))
for (const literal of ['true', 'false', 'null']) addLiteral(literal)

/** The first action. A number from here on says what the byte does to the stack. */
export const actionFirst = names.length
/** The byte opens an object. */
export const openObject = actionFirst
/** The byte opens an array. */
export const openArray = actionFirst + 1
/** The byte closes an object. A closing action is the opening action + 2. */
export const closeObject = actionFirst + 2
/** The byte closes an array. */
export const closeArray = actionFirst + 3
/** The byte separates two elements or members; the innermost container decides what follows. */
export const comma = actionFirst + 4
/** The byte is not allowed here. */
export const reject = actionFirst + 5

for (const at of [value, firstElement]) {
  for (const [bytes, to] of [...numberStarts, ...literalStarts]) edges.push([at, bytes, to])
  edges.push([at, '"', valueString], [at, '{', openObject], [at, '[', openArray])
}
edges.push([firstElement, ']', closeArray], [firstKey, '}', closeObject])
for (const at of [afterValue, ...endsOfNumbers]) {
  edges.push([at, space, afterValue], [at, ',', comma], [at, '}', closeObject])
  edges.push([at, ']', closeArray])
}

/** 1 for a byte that stands for itself within a string. */
const plain = new Uint8Array(256).fill(1, 0x20)
plain[0x22] = 0
plain[0x5c] = 0

const transitions = new Uint8Array(actionFirst << 8).fill(reject)
for (const inside of [keyString, valueString]) {
  for (let byte = 0; byte < 256; byte++) {
    if (plain[byte] === 1) transitions[(inside << 8) | byte] = inside
  }
}
for (const [from, bytes, to] of edges) {
  for (const byte of Buffer.from(bytes, 'latin1')) transitions[(from << 8) | byte] = to
}

/**
 * Returns the description of what was expected in a state.
 *
 * @param at - a state of this table
 */
export function expectedIn(at: number): string {
  return names[at] ?? 'JSON'
}

/**
 * Returns the next state or an action.
 *
 * @param from - the current state
 * @param byte - the byte at the current position; the caller stays within the bytes
 */
export function step(from: number, byte: number | undefined): number {
  return transitions[(from << 8) | (byte ?? 0)] ?? reject
}

/** Returns the position of the first byte from `from` on that does not stand for itself within a string, or the end. */
export function skipPlain(bytes: Uint8Array, from: number): number {
  const end = bytes.length
  let at = from
  while (at < end && plain[bytes[at] ?? 0] === 1) at++
  return at
}
