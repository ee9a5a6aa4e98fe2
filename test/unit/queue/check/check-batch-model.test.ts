/** The native check compared with JavaScript on drawn and damaged updates. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { UpdateChecker } from '../../../../native-bindings/update-checker.ts'
import { checkRows, loadNativeCheck } from '../../../../src/queue/check/check-batch.ts'
import { idPaths } from '../../../../src/queue/check/ordering-key.ts'
import { updateTypes } from '../../../../src/kit/update-types.ts'
import {
  endColumn,
  keyLetterColumn,
  refusedType,
  rowLength,
  typeColumn,
  uncheckedType,
  underivedKey,
  updateStartColumn,
} from '../../../../src/shard/update-rows.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'
import {
  testOfSixtyFourTypes as test,
  withSixtyFourTypes,
} from '../../../support/queue/sixty-four-types.ts'
import { plainVerdict } from '../../../support/producers/plain-check.ts'
import { uncheckedRows, verdictOf } from '../../../support/queue/pushed-rows.ts'

const native: UpdateChecker = withSixtyFourTypes(loadNativeCheck)

/** Checks an update that ends with its memory, where scripts/sanitize-native sees a read beyond it. */
function typeAlone(update: Buffer): number | undefined {
  const alone = Buffer.allocUnsafeSlow(update.length)
  update.copy(alone)
  const numbers = new Int32Array(rowLength)
  numbers[endColumn] = alone.length
  numbers[typeColumn] = uncheckedType
  native(alone, numbers, 1)
  return numbers[typeColumn]
}

const counts = { accepted: 0, refused: 0, keyed: 0, unusual: 0 }

/** Asserts that the native code alone decides as JavaScript does, and that the two together say the same. */
function assertSame(updates: readonly Buffer[]): void {
  const { bytes, numbers } = uncheckedRows(updates)
  const left = native(bytes, numbers, updates.length)
  const rows = uncheckedRows(updates)
  checkRows(rows)
  let expectedLeft = 0
  for (const [nth, update] of updates.entries()) {
    const expected = plainVerdict(update)
    const typeNumber = numbers[nth * rowLength + typeColumn]
    const shown = update.toString('latin1')
    assert.equal(typeAlone(update), typeNumber, shown)
    assert.deepEqual(verdictOf(rows, nth), expected, shown)
    if (typeof expected === 'string') {
      expectedLeft++
      counts.refused++
      assert.equal(typeNumber, refusedType, shown)
      continue
    }
    counts.accepted++
    assert.equal(typeNumber, expected.typeNumber, shown)
    if (expected.derivedKey !== '') counts.keyed++
    if (numbers[nth * rowLength + keyLetterColumn] !== underivedKey) continue
    expectedLeft++
    counts.unusual++
  }
  assert.equal(left, expectedLeft)
}

const allTypes = withSixtyFourTypes(() =>
  updateTypes.map((type, number) => ({ type, paths: idPaths[number] ?? [] })),
)
const allPaths = allTypes.flatMap(({ paths }) => paths)
const names = [...new Set(allPaths.flatMap((path) => path.split('.')))]
const anyKey = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...names) },
  fc.constantFrom('x', 'ids', 'cha', 'chatt', '\\u0069d', 'ch\\u0061t', '\\"', 'é', '', '\\\\'),
)
const anyString = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => JSON.stringify(text)),
  fc.constantFrom(
    '"\\ud83d\\ude00"',
    '"\\u00e9\\/"',
    '"\\b\\f"',
    '"\u007f"',
    '"\u2028😀"',
    '"}"',
    '"\\\\"',
  ),
  fc.nat(90).map((length) => `"${'7'.repeat(length)}"`),
)
const anyScalar = fc.oneof(
  { weight: 4, arbitrary: fc.maxSafeInteger().map(String) },
  { weight: 4, arbitrary: anyString },
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.nat(90).map((length) => `-1${'0'.repeat(length)}`),
  fc.constantFrom('true', 'false', 'null', '-0', '1e3', '1E+2', '0.5'),
)
const anySpace = fc.oneof(
  { weight: 9, arbitrary: fc.constant('') },
  fc.constantFrom(' ', '\n', '\r\n', '\t '),
)

/** An object with these values, some of which may come twice. */
function objectOf(key: fc.Arbitrary<string>, of: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.array(fc.tuple(key, anySpace, of, anySpace), { maxLength: 6 }).map((members) => {
    const texts = members.map(
      ([name, before, value, after]) => `${before}"${name}"${after}:${before}${value}${after}`,
    )
    return `{${texts.join(',')}}`
  })
}

const anyValue = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    anyScalar,
    objectOf(anyKey, tie('value')),
    fc.array(tie('value'), { maxLength: 3 }).map((values) => `[${values.join(',')}]`),
  ),
})).value

/** An object with an id at the path, at the end of others, which may lead there, too. */
function objectWith(path: readonly string[]): fc.Arbitrary<string> {
  const [name, ...rest] = path
  if (name === undefined) return anyScalar
  return fc
    .tuple(objectOf(anyKey, anyValue), objectWith(rest), anyValue)
    .map(([others, value, last]) => {
      const before = others === '{}' ? '{' : `${others.slice(0, -1)},`
      return `${before}"${name}":${value},"last":${last}}`
    })
}

const anyUpdate = fc
  .constantFrom(...allTypes)
  .chain(({ type, paths }) =>
    fc.tuple(
      fc.constant(type),
      // A type without a path may have any payload.
      fc.oneof(...(paths.length === 0 ? ['id'] : paths).map((path) => objectWith(path.split('.')))),
      anySpace,
      anySpace,
    ),
  )
  .map(([type, payload, before, between]) =>
    Buffer.from(`${before}{${between}"${type}"${before}:${between}${payload}${before}}${between}`),
  )
const invalid = [
  '"\\ud800"',
  '"\\ude00\\ud83d"',
  '"\\x"',
  '01',
  '1.',
  '.5',
  'nul',
  ',',
  '}',
  '"id":1,',
]
const pieces = [...invalid, ...'"\\{}[]:,01.eE-+ \n\0u/'.split('')].map((piece) =>
  Buffer.from(piece),
)
const oddPieces = [
  '80',
  'c080',
  'c3',
  'c3a9',
  'eda080',
  'e0a080',
  'f09f9880',
  'f4908080',
  'ff',
  'efbbbf',
]
const change = fc.record({
  at: fc.nat(),
  removed: fc.nat(3),
  piece: fc.oneof(
    fc.constantFrom(Buffer.alloc(0), ...pieces),
    fc.constantFrom(...oddPieces.map((hex) => Buffer.from(hex, 'hex'))),
    fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
  ),
})

function changed(
  update: Buffer,
  changes: readonly { at: number; removed: number; piece: Buffer }[],
): Buffer {
  return changes.reduce((bytes, { at, removed, piece }) => {
    const from = at % (bytes.length + 1)
    return Buffer.concat([bytes.subarray(0, from), piece, bytes.subarray(from + removed)])
  }, update)
}

test('the native check decides as JavaScript does, for updates and for damaged ones', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(anyUpdate, fc.array(change, { maxLength: 2 })), { maxLength: 8 }),
      (drawn) => assertSame(drawn.map(([update, changes]) => changed(update, changes))),
    ),
    { numRuns: drawnRuns(2_000) },
  )
  assert.ok(
    Object.values(counts).every((count) => count > 200),
    JSON.stringify(counts),
  )
})

test('the native check decides as JavaScript does for every type and each prefix', () => {
  const payload = Buffer.from(
    '{"id":1,"poll_id":"2","business_connection_id":"c","chat":{"id":-3},"from":{"id":4},"user":{"id":5},"new_chat_member":{"user":{"id":"\\u0036"}},"é":[1.5e+1,true,"\\ud83d\\ude00"]}',
  )
  for (const type of updateTypes) {
    const update = Buffer.concat([Buffer.from(`{"${type}":`), payload, Buffer.from('}')])
    assertSame(Array.from({ length: update.length + 1 }, (_, at) => update.subarray(0, at)))
    assertSame([
      Buffer.from(`{"${type}" :{}}`),
      Buffer.from(`{"${type}_":{}}`),
      Buffer.from(`{"${type}`),
    ])
  }
})

test('the native check decides as JavaScript does for any nesting', () => {
  const updates: Buffer[] = []
  for (const [open, close] of [
    ['[', ']'],
    ['{"chat":', '}'],
    ['[{"id":', '}]'],
    ['[', '}'],
  ] as const) {
    for (const depth of [1, 30, 31, 32, 61, 62, 63, 64, 65, 100_000]) {
      for (const inner of ['1', '[]', '{}', '']) {
        updates.push(
          Buffer.from(`{"poll":{"a":${open.repeat(depth)}${inner}${close.repeat(depth)},"id":7}}`),
        )
      }
    }
  }
  assertSame(updates)
})

test('the native check decides as JavaScript does for all pairs and triples of bytes in a string', () => {
  const interesting = [0x00, 0x1f, 0x20, 0x22, 0x5c, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0]
  interesting.push(
    0xc1,
    0xc2,
    0xdf,
    0xe0,
    0xe1,
    0xec,
    0xed,
    0xee,
    0xef,
    0xf0,
    0xf1,
    0xf3,
    0xf4,
    0xf5,
    0xff,
  )
  const before = Buffer.from('{"poll":{"a":"')
  const after = Buffer.from('"}}')
  for (const first of interesting) {
    const updates: Buffer[] = []
    for (const second of interesting) {
      updates.push(Buffer.concat([before, Buffer.of(first, second), after]))
      for (const third of interesting) {
        updates.push(Buffer.concat([before, Buffer.of(first, second, third), after]))
        updates.push(Buffer.concat([before, Buffer.of(first, second, third, 0x80), after]))
      }
    }
    assertSame(updates)
  }
})

test('the native check decides as JavaScript does for escapes', () => {
  const escapes = ['0041', 'D7fF', 'd800', 'd8FF', 'dbff', 'dc00', 'DfFF', 'e000', '00g0', '123']
    .map((digits) => `\\u${digits}`)
    .concat(...'"\\/bfnrtuvx\0 '.split('').map((letter) => `\\${letter}`), 'x', '\\U0041', '')
  const updates = escapes.flatMap((first) =>
    escapes.flatMap((second) => [
      Buffer.from(`{"poll":{"id":"${first}${second}"}}`),
      Buffer.from(`{"poll":{"${first}${second}":1}}`),
      Buffer.from(`{"poll":{"id":"${first}${second}`),
    ]),
  )
  assertSame(updates)
})

test('a range that is not within the bytes is an error', () => {
  for (const [start, end] of [
    [0, 11],
    [-1, 5],
    [6, 5],
    [2 ** 31, 5],
  ]) {
    const rows = new Int32Array(rowLength)
    rows.set([start ?? 0, end ?? 0, uncheckedType], updateStartColumn)
    assert.throws(() => native(Buffer.alloc(10), rows, 1), /not within the bytes/)
  }
  assert.throws(() => native(Buffer.alloc(10), new Int32Array(rowLength), 2), TypeError)
})
