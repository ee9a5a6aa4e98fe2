import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { botIdOf, parsePairHeader } from '../../../../src/private-api/ingest/pair-header.ts'
import { PostboteError } from '../../../../src/errors.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'

/** Puts the header between other bytes of a stream, which must not be read as part of it. */
function placed(line: Buffer): [bytes: Buffer, start: number, end: number] {
  const bytes = Buffer.concat([Buffer.from('{"bot_id":1\n'), line, Buffer.from('\n,"ttl":1}')])
  return [bytes, 12, 12 + line.length]
}

function parse(json: string | object): object {
  const text = typeof json === 'string' ? json : JSON.stringify(json)
  return parsePairHeader(...placed(Buffer.from(text)))
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
    () => parsePairHeader(...placed(Buffer.from('{"bot_id":100,"ordering_key":"\xff"}', 'latin1'))),
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

function botId(json: string): number | undefined {
  return botIdOf(...placed(Buffer.from(json)))
}

test('the quick search for the bot agrees with the full parser', () => {
  assert.equal(botId('{"bot_id":4503599627370495,"ttl":1}'), 4503599627370495)
  assert.equal(botId('{"bot_id":100}'), 100)
  assert.equal(botId('{ "ttl": 5, "bot_id" : 1e3 }'), 1000)
  assert.equal(botId('{"bot_id":1e3}'), 1000)
  assert.equal(botId('{"bot_id":100 }'), 100)
  for (const json of [
    '',
    '{',
    '{"bot_id":',
    '{"bot_id":100',
    '{"bot_id":}',
    '{"bot_id":99}',
    '{"bot_id":0100}',
    '{"bot_id":4503599627370496}',
    '{"bot_id":99999999999999999999999999}',
    '{"bot_id":"100"}',
    '{"bot_id":-100}',
    '{"bot_id":100.5}',
    '{"bot_idx":100}',
    '[]',
  ]) {
    assert.equal(botId(json), undefined, json)
  }
  const fields = fc.record(
    {
      bot_id: fc.oneof(fc.integer({ min: 90, max: 2000 }), fc.maxSafeNat(), fc.constant('x')),
      ordering_key: fc.string(),
      ttl: fc.integer({ min: 1, max: 5 }),
      test: fc.boolean(),
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fields, fc.nat(1), fc.boolean(), (record, indent, isReversed) => {
      const entries = Object.entries(record)
      const line = Buffer.from(
        JSON.stringify(
          Object.fromEntries(isReversed ? entries.toReversed() : entries),
          null,
          indent,
        ).replaceAll('\n', ' '),
      )
      let expected: number | undefined
      try {
        expected = parsePairHeader(...placed(line)).botId
      } catch {
        return
      }
      assert.equal(botIdOf(...placed(line)), expected)
    }),
  )
})

function outcomeOf(text: string): unknown {
  try {
    return parse(text)
  } catch (error) {
    return String(error)
  }
}

test('a header without white space is read like any other', () => {
  const texts = fc.oneof(
    fc.string(),
    fc.constantFrom('', 'é', '"', '\\', '{"x":1}', 'a\u0000', 'k'.repeat(128), 'k'.repeat(129)),
    fc.string({ minLength: 250, maxLength: 260, unit: fc.constantFrom('a', 'é') }),
  )
  const numbers = fc.constantFrom('0', '7', '-7', '1.0', '1e3', '01', '12345678901234567890', '"7"')
  const line = fc.record({
    botId: fc.constantFrom('1000', '99', '100', '4503599627370495', '4503599627370496', '1e3'),
    ordering: fc.option(
      fc.oneof(
        texts.map((text) => JSON.stringify(text)),
        numbers,
      ),
    ),
    idempotency: fc.option(
      fc.oneof(
        texts.map((text) => JSON.stringify(text)),
        numbers,
      ),
    ),
    end: fc.constantFrom('}', '', ',"ttl":1}', '}x', ',"ordering_key":"2"}'),
  })
  fc.assert(
    fc.property(line, ({ botId: bot, ordering, idempotency, end }) => {
      const keys =
        (ordering === null ? '' : `,"ordering_key":${ordering}`) +
        (idempotency === null ? '' : `,"idempotency_key":${idempotency}`)
      const rest = `"bot_id":${bot}${keys}${end}`
      assert.deepEqual(outcomeOf(`{${rest}`), outcomeOf(`{ ${rest}`))
    }),
    { numRuns: drawnRuns(2_000) },
  )
})
