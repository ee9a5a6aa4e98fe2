/**
 * Draws chunks of a stream of pairs for the native code: several pairs as producers send them, with the shapes that parsers
 * get wrong, and then damaged in up to three places. Written as text by hand, because arbitraries of fast-check would take
 * ten times as long, and a run draws a hundred thousand chunks.
 */
import { pairHeaderBytesMax } from '../../../src/api/limits.ts'
import { idLengthMax, idPaths } from '../../../src/queue/check/ordering-key.ts'
import { updateNestingMax } from '../../../src/queue/check/why-refused.ts'
import { updateTypes } from '../../../src/kit/update-types.ts'
import { setSixtyFourTypes } from '../../support/queue/sixty-four-types.ts'
import type { Luck } from '../../support/simulation/luck.ts'

setSixtyFourTypes()

/** The limit of an update line, which is for tests that draw chunks. */
export const drawnUpdateBytesMax = 700
const pairsMax = 5
const damagesMax = 3

/** Returns the bytes of a chunk. */
export function drawChunk(luck: Luck): Buffer {
  let text = luck.chance(0.01) ? byteOrderMark : ''
  for (let left = 1 + luck.skewed(pairsMax - 1); left > 0; left--) {
    const lineEnd = luck.chance(0.1) ? '\r\n' : '\n'
    text += padded(luck, headerText(luck), pairHeaderBytesMax) + lineEnd
    text += padded(luck, updateText(luck), drawnUpdateBytesMax) + lineEnd
    if (luck.chance(0.03)) text += lineEnd
  }
  let chunk: Buffer = Buffer.from(text, 'latin1')
  const damages = luck.chance(0.5) ? luck.int(1, damagesMax) : 0
  for (let nth = 0; nth < damages; nth++) chunk = damaged(luck, chunk)
  return chunk
}

/** Makes some lines as long as they may be, or longer or shorter by one. */
function padded(luck: Luck, line: string, bytesMax: number): string {
  return luck.chance(0.005) ? line.padEnd(bytesMax + luck.int(-1, 1)) : line
}

function headerText(luck: Luck): string {
  const botId = luck.chance(0.9) ? luck.int(100, 2 ** 31) : luck.pick(oddBotIds)
  let text = `{"bot_id":${botId}`
  for (let left = luck.skewed(3); left > 0; left--) {
    text += `,${spaceText(luck)}${luck.pick(fields)}${spaceText(luck)}:${spaceText(luck)}`
    text += luck.chance(0.5) ? luck.pick(fieldValues) : idText(luck)
  }
  return `${text}${lastText(luck)}}`
}

function updateText(luck: Luck): string {
  const typeNumber = luck.int(0, updateTypes.length - 1)
  const type = updateTypes[typeNumber] ?? ''
  const paths = idPaths[typeNumber] ?? []
  const path = paths.length === 0 ? 'id' : luck.pick(paths)
  const space = spaceText(luck)
  const payload = luck.chance(0.04) ? deepText(luck) : objectText(luck, path.split('.'), 0)
  return `${space}{${space}"${type}"${spaceText(luck)}:${space}${payload}${space}}${spaceText(luck)}`
}

/** An object that leads to an id by the path, if luck wills, between others that may lead there, too. */
function objectText(luck: Luck, path: readonly string[], depth: number): string {
  const [name, ...rest] = path
  const members: string[] = []
  for (let left = luck.skewed(4); left > 0; left--) members.push(memberText(luck, depth))
  if (name !== undefined && luck.chance(0.9)) {
    const isEnd = rest.length === 0 || luck.chance(0.1)
    const value = isEnd ? idText(luck) : objectText(luck, rest, depth + 1)
    const member = `"${name}"${spaceText(luck)}:${spaceText(luck)}${value}`
    members.splice(luck.int(0, members.length), 0, member)
  }
  return `{${members.join(`,${spaceText(luck)}`)}${lastText(luck)}}`
}

function memberText(luck: Luck, depth: number): string {
  const key = luck.chance(0.8) ? `"${luck.pick(keys)}"` : stringText(luck)
  return `${key}${spaceText(luck)}:${valueText(luck, depth)}`
}

function valueText(luck: Luck, depth: number): string {
  const kind = luck.int(0, depth < 3 ? 7 : 5)
  if (kind <= 2) return stringText(luck)
  if (kind <= 4) return numberText(luck)
  if (kind === 5) return luck.pick(['true', 'false', 'null'])
  if (kind === 6) return objectText(luck, [], depth + 1)
  const values = Array.from({ length: luck.skewed(3) }, () => valueText(luck, depth + 1))
  return `[${values.join(',')}${lastText(luck)}]`
}

function idText(luck: Luck): string {
  const kind = luck.int(0, 9)
  if (kind <= 5) return numberText(luck)
  if (kind <= 7) return stringText(luck)
  if (kind === 8) return valueText(luck, 2)
  const digits = '7'.repeat(idLengthMax + luck.int(-2, 2))
  return luck.pick([digits, `-${digits}`, `"${digits}"`, `"${digits}\\u0037"`])
}

/** Nesting around its limit. */
function deepText(luck: Luck): string {
  const depth = updateNestingMax - 2 + luck.int(-2, 2)
  const kinds = Array.from({ length: depth }, () => luck.pick(nests))
  const opened = kinds.map(([open]) => open).join('')
  const closed = kinds.map(([, close]) => close).toReversed()
  return `{"a":${opened}${luck.pick(['1', '{}', '[]', '"x"'])}${closed.join('')},"id":1}`
}

function numberText(luck: Luck): string {
  return luck.chance(0.6) ? `${luck.int(-(2 ** 40), 2 ** 53)}` : luck.pick(oddNumbers)
}

function stringText(luck: Luck): string {
  let text = ''
  for (let left = luck.skewed(6); left > 0; left--)
    text += luck.pick(luck.chance(0.06) ? oddPieces : stringPieces)
  return `"${text}"`
}

/** What comes before a closing brace or bracket. */
function lastText(luck: Luck): string {
  return luck.chance(0.01) ? luck.pick([',', ',,', ':', ']', '}']) : spaceText(luck)
}

function spaceText(luck: Luck): string {
  return luck.chance(0.92)
    ? ''
    : luck.pick([' ', '\t', '\r', '  \t ', luck.pick(['\v', '\f', ' '])])
}

const names = idPaths.flat().flatMap((path) => path.split('.'))
const keys = [
  ...new Set(names),
  'ids',
  'cha',
  'chatt',
  '\\u0069d',
  'ch\\u0061t',
  '\\/',
  '\u00c3\u00a9',
  '',
]
const nests = [
  ['[', ']'],
  ['{"chat":', '}'],
  ['[1,', ']'],
  ['{"id":', ',"id":2}'],
] as const
const oddNumbers = (
  '0 -0 -1 1e3 1E+2 1e-2 0.5 -0.0e0 12345678901234567890 4503599627370496 2147483648 ' +
  '01 - 1. .5 +1 1e 1e+ 0x1 --1 00 -01'
).split(' ')
const oddBotIds = [...oddNumbers, '99', '100', '4503599627370495', '1e2', '100.0', '-100', '0100']
const fields =
  '"ordering_key" "idempotency_key" "ttl" "test" "validate" "x" "bot_id" "traceparent"'.split(' ')
const ids = '0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331'
const fieldValues = [
  ...'true false null 60 1 31536000 31536001 "telegram" "x" "" "a~" "a\u007f" "a\u001f" [] 100 0 7'.split(
    ' ',
  ),
  ...[`00-${ids}-01`, `00-${ids}-04`, `01-${ids}-00`, `00-${ids}-0`].map((place) => `"${place}"`),
  ...[127, 128, 129, 255, 256, 257].map((length) => `"${'k'.repeat(length)}"`),
]
/** Texts are strings of bytes, so that they may have invalid UTF-8. */
const stringPieces = [
  ...String.raw`a id hello longer_than_eight \n \\ \" \/ \b \u0041 \u00e9 \uD83D\uDE00 \udbff\udfff \ud7ff \ue000`.split(
    ' ',
  ),
  ...'Привет 日本 😀 { } , \u007f \u0080 \u07ff \u0800 \u2028 \uffff \u{10ffff}'.split(' '),
].map((piece) => Buffer.from(piece).toString('latin1'))
/** At the edges of what is valid; most are not. */
const oddPieces = [
  ...String.raw`\ud800 \udc00 \udfff \ude00\ud83d \ud83d\u0041 \ud800\udfff \ud800\ue000`.split(
    ' ',
  ),
  ...String.raw`\u12 \u004g \uG041 \U0041 \x \ ":`.split(' '),
  ...'\\\0 \0 \u001f \t'.split(' '),
  ...'80 bf c080 c1bf c2 c27f c2c0 dfbf e0a080 e09fbf e28028 eda080 ed9fbf'.split(' ').map(bytesOf),
  ...'efbfbf efbbbf f0908080 f08fbfbf f09f9828 f09f2880 f48fbfbf f4908080 f5808080 ff'
    .split(' ')
    .map(bytesOf),
]

function bytesOf(hex: string): string {
  return Buffer.from(hex, 'hex').toString('latin1')
}

function damaged(luck: Luck, chunk: Buffer): Buffer {
  const at = luck.int(0, chunk.length)
  const after = Math.min(at + luck.skewed(8), chunk.length)
  switch (luck.int(0, 5)) {
    case 0:
      return chunk.subarray(0, at)
    case 1:
      return Buffer.concat([chunk.subarray(0, at), chunk.subarray(after)])
    case 2:
      return Buffer.concat([chunk.subarray(0, after), chunk.subarray(at)])
    case 3:
      if (at < chunk.length) chunk[at] = luck.int(0, 255)
      return chunk
    case 4:
      if (at < chunk.length) chunk[at] = (chunk[at] ?? 0) ^ (1 << luck.int(0, 7))
      return chunk
    default:
      return Buffer.concat([chunk.subarray(0, at), luck.pick(pieces), chunk.subarray(after)])
  }
}

const byteOrderMark = bytesOf('efbbbf')
/** What JSON and UTF-8 consist of, and what they must not have. */
const pieces = [
  '"id":1,',
  '}}',
  '{"',
  'null',
  '\r\n',
  ...'"\\{}[]:,01.eE-+ \n\r\t\0/u'.split(''),
  ...oddPieces,
].map((piece) => Buffer.from(piece, 'latin1'))
