import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parsePairHeader, readHeaders } from '../../../../src/features/ingest/pair-header.ts'
import { PairSplitter } from '../../../../src/features/ingest/pair-splitter.ts'
import type { UpdateRows } from '../../../../src/shard/update-rows.ts'
import { PostboteError } from '../../../../src/kit/errors.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'
import { plainPairs } from '../../../support/producers/plain-pairs.ts'

function parse(json: string | object): object {
  const text = typeof json === 'string' ? json : JSON.stringify(json)
  return parsePairHeader(Buffer.from(text))
}

function refusalOf(json: string | object): string {
  try {
    parse(json)
  } catch (error) {
    assert.ok(error instanceof PostboteError, `a bug: ${String(error)}`)
    assert.equal(error.code, 'BAD_REQUEST')
    return error.message
  }
  return 'accepted'
}

const bare = {
  botId: 100,
  orderingKey: undefined,
  ttlS: undefined,
  idempotencyKey: undefined,
  isTest: false,
  isValidated: false,
}

test('a header may have all fields or only the bot', () => {
  assert.deepEqual(parse({ bot_id: 100 }), bare)
  assert.deepEqual(
    parse({
      bot_id: 2 ** 52 - 1,
      ordering_key: '42',
      ttl: 60,
      idempotency_key: 'x',
      test: true,
      validate: 'telegram',
    }),
    {
      botId: 2 ** 52 - 1,
      orderingKey: '42',
      ttlS: 60,
      idempotencyKey: 'x',
      isTest: true,
      isValidated: true,
    },
  )
  assert.deepEqual(parse(' { "test" : false , "bot_id" : 100 } '), bare)
})

function tracedLine(place: unknown): Buffer {
  return Buffer.from(JSON.stringify({ bot_id: 100, traceparent: place }))
}

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

test('the place in a trace is kept where updates are traced, and else refused as any field that does not exist', () => {
  assert.deepEqual(parsePairHeader(tracedLine(traceparent), 'kept'), { ...bare, traceparent })
  for (const absent of [null, '']) {
    const header = { ...bare, traceparent: undefined }
    assert.deepEqual(parsePairHeader(tracedLine(absent), 'kept'), header)
  }
  assert.deepEqual(parsePairHeader(tracedLine(traceparent), 'ignored'), bare)
  assert.equal(
    refusalOf({ bot_id: 100, traceparent }),
    refusalOf({ bot_id: 100, tracepar_nt: 1 }).replace('tracepar_nt', 'traceparent'),
  )
})

function tracedPair(stream: Buffer): UpdateRows {
  const [rows] = new PairSplitter({ updateLineBytesMax: 100, isTraced: true }).feed(stream)
  assert(rows !== undefined)
  return rows
}

test('native code reads a place in a trace as JavaScript does, and leaves to it what is unusual', () => {
  const zero = '0'.repeat(16)
  let read = 0
  for (const place of [
    traceparent,
    traceparent.replace('-01', '-00'),
    traceparent.replace('-01', '-03'),
    traceparent.replace('-01', '-04'),
    traceparent.replace('00-', '01-'),
    traceparent.replace('b7ad6b7169203331', zero),
    traceparent.replace('0af7651916cd43dd8448eb211c80319c', zero + zero),
    traceparent.replace('b7', 'B7'),
    traceparent.replace('b7', 'g7'),
    `${traceparent}0`,
    traceparent.slice(1),
    traceparent.replaceAll('-', '_'),
  ]) {
    for (const header of [
      `{"bot_id":100,"traceparent":"${place}"}`,
      `{"bot_id":100, "ttl":7 , "traceparent" : "${place}" ,"test":true}`,
      `{"bot_id":100,"traceparent":"${place}","traceparent":"${place}"}`,
    ]) {
      const stream = Buffer.from(`\n${header}\n{}\n`)
      const [native, plain] = [tracedPair(stream), plainPairs(stream, 100)]
      if (!Number.isNaN(native.botOf(0))) read += 1
      for (const rows of [native, plain]) readHeaders(rows, 100, 'kept')
      assert.equal(native.refusalOf(0)?.message, plain.refusalOf(0)?.message)
      if (plain.refusalOf(0) !== undefined) continue
      assert.equal(native.traceparentOf(0), plain.traceparentOf(0), header)
      assert.deepEqual(
        [native.isTest(0), native.ttlOf(0), native.isTraced(0)],
        [plain.isTest(0), plain.ttlOf(0), plain.isTraced(0)],
      )
    }
  }
  assert.equal(read, 6)
})

test('a place in a trace that is not valid is refused by name', () => {
  for (const bad of [traceparent.toUpperCase(), traceparent.slice(1), 1, {}, [traceparent]]) {
    assert.throws(() => parsePairHeader(tracedLine(bad), 'kept'), {
      code: 'BAD_REQUEST',
      message: /traceparent: expected 00-<32 digits>/,
    })
  }
})

test('null and an empty text mean an absent field', () => {
  assert.deepEqual(
    parse({
      bot_id: 100,
      ordering_key: null,
      ttl: null,
      idempotency_key: null,
      test: null,
      validate: null,
    }),
    bare,
  )
  assert.deepEqual(parse({ bot_id: 100, ordering_key: '', ttl: '', test: '' }), bare)
})

test('a number as ordering key is its text with all its digits', () => {
  assert.deepEqual(parse('{"bot_id":100,"ordering_key":12345678901234567890}'), {
    ...bare,
    orderingKey: '12345678901234567890',
  })
  assert.deepEqual(parse('{"bot_id":100,"ordering_key":"a","ordering_key":12345678901234567890}'), {
    ...bare,
    orderingKey: '12345678901234567890',
  })
  assert.deepEqual(parse({ bot_id: 100, ordering_key: -5 }), { ...bare, orderingKey: '-5' })
})

test('a refusal names the field and what was expected', () => {
  for (const bot_id of [undefined, null, 99, 2 ** 52, '100', 100.5, -100, true, [100]]) {
    assert.match(
      refusalOf({ bot_id }),
      /^Bad Request: bot_id: expected a whole number from 100 to 4503599627370495, got (?:none|true|"100"|[-\d.]+|a list of 1)$/,
    )
  }
  for (const ordering_key of [true, [], {}, 'é'.repeat(129), '\ud800']) {
    assert.match(
      refusalOf({ bot_id: 100, ordering_key }),
      /^Bad Request: ordering_key: expected a string of at most 256 bytes, or a number, got /,
    )
  }
  for (const ttl of [0, -1, 1.5, '60', 31_536_001, true]) {
    assert.equal(
      refusalOf({ bot_id: 100, ttl }),
      `Bad Request: ttl: expected a whole number of seconds from 1 to 31536000, got ${JSON.stringify(ttl)}`,
    )
  }
  for (const idempotency_key of ['', 'x'.repeat(129), 'é', 'a\n', 5, true]) {
    assert.equal(
      refusalOf({ bot_id: 100, idempotency_key }),
      'Bad Request: idempotency_key: expected 1 to 128 printable ASCII characters',
    )
  }
  for (const isTest of ['true', 1, 'no', {}]) {
    assert.match(
      refusalOf({ bot_id: 100, test: isTest }),
      /^Bad Request: test: expected true or false, got /,
    )
  }
  for (const json of [
    '',
    '[]',
    'null',
    '1',
    '{',
    '{"bot_id":100}x',
    '{"bot_id":100,}',
    '\ufeff{"bot_id":100}',
  ]) {
    assert.equal(refusalOf(json), 'Bad Request: header: expected a JSON object on one line')
  }
  assert.throws(
    () => parsePairHeader(Buffer.from('{"bot_id":100,"ordering_key":"\xff"}', 'latin1')),
    /expected valid UTF-8/,
  )
})

test('the longest values are accepted', () => {
  assert.equal(
    refusalOf({
      bot_id: 100,
      ordering_key: 'é'.repeat(128),
      ttl: 31_536_000,
      idempotency_key: '~'.repeat(128),
    }),
    'accepted',
  )
})

test('an unknown field is refused with its name, because a misspelled one would have no effect', () => {
  assert.equal(
    refusalOf({ bot_id: 100, orderingkey: '1' }),
    'Bad Request: "orderingkey": expected only the fields bot_id, ordering_key, ttl, idempotency_key, test, validate',
  )
  assert.notEqual(refusalOf('{"bot_id":100,"__proto__":{}}'), 'accepted')
  assert.notEqual(refusalOf({ bot_id: 100, update: {} }), 'accepted')
})

test('a header with two bots is refused, so that router and owner agree', () => {
  assert.equal(
    refusalOf('{"bot_id":100,"bot_id":101}'),
    'Bad Request: bot_id: expected a single value',
  )
  assert.notEqual(refusalOf('{"bot_id":100,"bot\\u005fid":101}'), 'accepted')
})

/** Returns the row of a pair with this header, between others. */
function rowOf(header: string): UpdateRows {
  const splitter = new PairSplitter({ updateLineBytesMax: 100 })
  const [rows] = splitter.feed(Buffer.from(`\n${header}\n{"poll":{}}\n,"ttl":1}\nx\n`))
  assert(rows !== undefined)
  return rows
}

const counts = { read: 0, left: 0 }

/** Asserts that the native code reads a header as JavaScript does, or leaves it. */
function assertSame(header: string): void {
  const rows = rowOf(header)
  const botId = rows.botOf(0)
  if (Number.isNaN(botId)) counts.left++
  else {
    counts.read++
    const { botId: expected, orderingKey, ttlS, ...rest } = parsePairHeader(Buffer.from(header))
    assert.equal(botId, expected)
    assert.equal(rows.orderingKeyOf(0), orderingKey === undefined ? '' : `=${orderingKey}`)
    assert.equal(rows.ttlOf(0), ttlS ?? 0)
    const { idempotencyKey, isTest, isValidated } = rest
    assert.equal(rows.idempotencyKeyOf(0), idempotencyKey)
    assert.equal(rows.hasIdempotencyKey(0), idempotencyKey !== undefined)
    assert.deepEqual([rows.isTest(0), rows.isValidated(0)], [isTest, isValidated])
  }
  readHeaders(rows, 100)
  const refusal = refusalOf(header)
  assert.equal(rows.refusalOf(0)?.message ?? 'accepted', refusal)
  assert.equal(rows.isNotOurs(0), refusal !== 'accepted')
}

const space = fc.oneof(
  { weight: 6, arbitrary: fc.constant('') },
  fc.constantFrom(' ', '\t', '\r', ' \t '),
)
const someText = fc.oneof(
  fc.string(),
  fc.constantFrom('', 'é', '"', '\\', '{"x":1}', 'a\u0000', 'k'.repeat(128), 'k'.repeat(129)),
  fc.string({ minLength: 250, maxLength: 260, unit: fc.constantFrom('a', 'é') }),
)
const someValue = fc.oneof(
  { weight: 3, arbitrary: someText.map((text) => JSON.stringify(text)) },
  fc.constantFrom('0', '7', '-7', '1.0', '1e3', '01', '12345678901234567890', '"7"', '31536000'),
  fc.constantFrom('31536001', 'true', 'false', 'null', '"telegram"', '', '[]', '"\\u0041"'),
)
const someBot = fc.constantFrom(
  '1000',
  '99',
  '100',
  '4503599627370495',
  '4503599627370496',
  '1e3',
  '0100',
  '"100"',
  '100.5',
  '-100',
  '1'.repeat(30),
)
const someName = fc.constantFrom(
  'ordering_key',
  'idempotency_key',
  'ttl',
  'test',
  'validate',
  'ordering_ke',
  'bot_id',
)
const usualValues = {
  ordering_key: ['"a"', '7', '"7"'],
  idempotency_key: ['"k"', '" ~"'],
  ttl: ['1', '31536000'],
  test: ['true', 'false'],
  validate: ['"telegram"'],
}
const usualMember = fc
  .constantFrom(...Object.entries(usualValues))
  .chain(([name, values]) => fc.tuple(fc.constant(name), space, fc.constantFrom(...values), space))

test('the native code reads headers as JavaScript does, or leaves them', () => {
  const member = fc.oneof(
    { weight: 4, arbitrary: usualMember },
    fc.tuple(someName, space, someValue, space),
  )
  const ends = fc.constantFrom('}', '}', '}', '}', '', '}x', ',}', '} ')
  fc.assert(
    fc.property(
      someBot,
      fc.array(member, { maxLength: 4 }),
      space,
      ends,
      (bot, members, before, end) => {
        const rest = members.map(
          ([name, gap, value, after]) => `,${gap}"${name}"${after}:${gap}${value}${after}`,
        )
        assertSame(`{"bot_id":${before}${bot}${before}${rest.join('')}${end}`.replaceAll('\n', ' '))
      },
    ),
    { numRuns: drawnRuns(3_000) },
  )
  for (const header of [
    '{',
    '{}',
    '[]',
    '{"bot_id":',
    '{"bot_id":100',
    ' {"bot_id":100}',
    '{"ttl":1,"bot_id":100}',
  ]) {
    assertSame(header)
  }
  assert.ok(counts.left > drawnRuns(200), JSON.stringify(counts))
  assert.ok(counts.read > drawnRuns(100), JSON.stringify(counts))
})

test('a header that is refused for another reason still tells its bot', () => {
  for (const [header, botId] of [
    ['{"bot_id":100,"typo":1}', 100],
    ['{"bot_id":100}x', 100],
    ['{"bot_id":99,"typo":1}', -1],
    ['{"bot_id":4503599627370496,"typo":1}', -1],
    ['{"typo":1}', -1],
  ] as const) {
    const rows = rowOf(header)
    readHeaders(rows, 100)
    assert.equal(rows.botOf(0), botId, header)
    assert.notEqual(rows.refusalOf(0), undefined)
  }
})
