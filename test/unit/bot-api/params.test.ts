import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import fc from 'fast-check'
import { readParams } from '../../../src/bot-api/params.ts'
import {
  form,
  json,
  multipart,
  part,
  parts,
  read,
  refusalOf,
} from '../../support/bots/read-params.ts'
import { drawnRuns } from '../../support/kit/drawn-runs.ts'

const limits = { default: 7, min: 1, max: 100 }

test('a request without a body is read without waiting for the stream', async () => {
  const request = Object.assign(new Readable(), { headers: {} })
  const params = await readParams(request, { query: 'offset=5', bytesMax: 1 })
  assert.equal(params.text('offset'), '5')
})

test('an empty body means no parameters, with any Content-Type or none', async () => {
  for (const type of [undefined, json, form, multipart, 'multipart/form-data', 'text/plain', '']) {
    for (const body of ['', 'null', 'null\n', '[]', '{}', ' [ ] ', '{ }\r\n', '\r\n']) {
      const params = await read({ query: 'a=1', ...(type === undefined ? {} : { type }), body })
      assert.equal(params.text('a'), '1', `${type} ${body}`)
    }
  }
})

test('a body of an unknown Content-Type is ignored', async () => {
  const params = await read({ type: 'text/plain', body: 'a=1', query: 'b=2' })
  assert.deepEqual([params.text('a'), params.text('b')], [undefined, '2'])
})

test('a Content-Type is recognized in any case and with parameters after it', async () => {
  assert.equal(
    (await read({ type: 'Application/JSON; charset=utf-8', body: '{"a":1}' })).text('a'),
    '1',
  )
  assert.equal(
    (await read({ type: `${form.toUpperCase()};charset=utf-8`, body: 'a=1' })).text('a'),
    '1',
  )
  const quoted = 'Multipart/Form-Data; charset=utf-8; BOUNDARY="B"'
  assert.equal((await read({ type: quoted, body: parts(part('a', '1')) })).text('a'), '1')
})

test('JSON that is labeled as a form, or has no Content-Type, is read as JSON', async () => {
  const texts = ['{"url":"u","a":"x=1&url=y"}', ' \r\n\t{"url":"u"}\n', '\ufeff{"url":"u"}']
  for (const body of texts) {
    for (const type of [form, `${form}; charset=UTF-8`, '', undefined]) {
      const params = await read({ query: 'url=q', ...(type === undefined ? {} : { type }), body })
      assert.equal(params.text('url'), 'u', `${type} ${body}`)
    }
    for (const type of ['text/plain', 'x']) {
      assert.equal((await read({ query: 'url=q', type, body })).text('url'), 'q', type)
    }
  }
})

test('a form that begins with a brace and is not a JSON object stays a form', async () => {
  for (const start of ['{', '{"url"', '{}', ' {"a":1}x', '{"a":1}{']) {
    const params = await read({ type: form, body: `${start}=1&url=u` })
    assert.deepEqual([params.text('url'), params.text(start)], ['u', '1'], start)
    const untyped = await read({ query: 'url=q', body: `${start}=1&url=u` })
    assert.equal(untyped.text('url'), 'q', start)
  }
})

test('every JSON value is the same as its text', async () => {
  const pairs = [
    ['30', '"30"'],
    ['true', '"true"'],
    ['["a"]', '"[\\"a\\"]"'],
    ['-1', '"-1"'],
    ['1.5', '"1.5"'],
    ['1e3', '"1000"'],
    ['1e21', '"1000000000000000000000"'],
  ] as const
  for (const [value, text] of pairs) {
    const params = await read({ type: json, body: `{"a":${value},"b":${text}}` })
    assert.equal(params.text('a'), params.text('b'), value)
    assert.notEqual(params.text('a'), undefined)
  }
})

test('unknown keys with nested values are ignored', async () => {
  const deep = '['.repeat(90) + ']'.repeat(90)
  const params = await read({ type: json, body: `{"x":{"y":[{}]},"deep":${deep},"offset":3}` })
  assert.equal(params.text('offset'), '3')
})

test('names of object properties are accepted as any other name', async () => {
  const params = await read({ type: json, body: '{"__proto__":{"a":1},"constructor":"c"}' })
  assert.deepEqual([params.text('a'), params.text('constructor')], [undefined, 'c'])
  assert.equal(params.text('toString'), undefined)
})

test('a byte order mark before JSON is skipped', async () => {
  assert.equal((await read({ type: json, body: '\ufeff{"a":1}' })).text('a'), '1')
})

test('an empty value and null count as absent', async () => {
  assert.equal((await read({ query: 'a=' })).text('a'), undefined)
  assert.equal((await read({ query: 'a' })).text('a'), undefined)
  assert.equal((await read({ type: json, body: '{"a":""}' })).text('a'), undefined)
  assert.equal((await read({ type: json, body: '{"a":null}' })).text('a'), undefined)
  assert.equal((await read({ type: form, body: 'a=' })).text('a'), undefined)
  assert.equal((await read({ type: multipart, body: parts(part('a', '')) })).text('a'), undefined)
})

test('an empty value never replaces another one of the same name', async () => {
  assert.equal((await read({ query: 'a=1&a=' })).text('a'), '1')
  assert.equal((await read({ query: 'a=1', type: json, body: '{"a":""}' })).text('a'), '1')
  assert.equal((await read({ query: 'a=1', type: json, body: '{"a":null}' })).text('a'), '1')
  const file = part('certificate', 'PEM', '; filename="c.pem"')
  for (const body of [parts(file, part('certificate', '')), parts(part('certificate', ''), file)]) {
    const params = await read({ query: 'certificate=&url=u', type: multipart, body })
    assert.deepEqual([params.file('certificate')?.toString(), params.text('url')], ['PEM', 'u'])
  }
  const emptyFile = part('certificate', '', '; filename="c.pem"')
  const params = await read({ type: multipart, body: parts(file, emptyFile) })
  assert.equal(params.file('certificate')?.toString(), 'PEM')
})

test('forms are decoded: plus, percent, UTF-8, and broken escapes as they are', async () => {
  const params = await read({ query: 'a=x+y%20z&b=%C3%BC&c=100%&d%5B%5D=1&e=1=2&&=x' })
  const texts = ['a', 'b', 'c', 'd[]', 'e', ''].map((name) => params.text(name))
  assert.deepEqual(texts, ['x y z', 'ü', '100%', '1', '1=2', 'x'])
  assert.equal((await read({ query: Buffer.from('a=ü').toString('latin1') })).text('a'), 'ü')
})

test('an unreadable integer means 0, and every integer is clamped', async () => {
  const cases: readonly (readonly [string, number])[] = [
    ['5', 5],
    ['0', 1],
    ['101', 100],
    ['-3', 1],
    ['junk', 1],
    ['30.9', 30],
    [' 30 ', 30],
    ['12abc', 12],
    ['99999999999999999999999', 100],
    ['9'.repeat(1_000), 100],
    ['-99999999999999999999999', 1],
  ]
  for (const [text, expected] of cases) {
    const params = await read({ type: json, body: JSON.stringify({ limit: text }) })
    assert.equal(params.integer('limit', limits), expected, text)
  }
  assert.equal((await read({})).integer('limit', limits), 7)
  assert.equal((await read({ query: 'limit=' })).integer('limit', limits), 7)
  const wide = { default: 0, min: -(2 ** 63), max: 2 ** 63 }
  const offset = async (text: string) => (await read({ query: `o=${text}` })).integer('o', wide)
  assert.equal(await offset('-1'), -1)
  assert.equal(await offset('9223372036854775807'), 2 ** 63)
  assert.equal(await offset('-99999999999999999999'), -(2 ** 63))
  assert.ok(Object.is(await offset('-0'), 0))
})

test('booleans are true, yes and 1 in any case, and everything else is false', async () => {
  for (const text of ['true', 'True', 'YES', '1', ' true ']) {
    assert.equal((await read({ type: form, body: `a=${text}` })).boolean('a'), true, text)
  }
  for (const text of ['false', 'False', '0', 'no', '', 'on', '2', 'null']) {
    assert.equal((await read({ type: form, body: `a=${text}` })).boolean('a'), false, text)
  }
  assert.equal((await read({ type: json, body: '{"a":true}' })).boolean('a'), true)
  assert.equal((await read({})).boolean('a'), false)
})

test('JSON that does not parse or is no object is refused with the reason', async () => {
  const broken = '400 Bad Request: the body is not valid JSON'
  assert.doesNotMatch(await refusalOf({ type: json, body: '{"url":"hidden' }), /hidden/)
  assert.equal(await refusalOf({ type: json, body: '{"a":' }), `${broken}: it ends too early`)
  assert.equal(await refusalOf({ type: json, body: "{'a':1}" }), broken)
  for (const body of ['[1]', '1', '"a"', 'true']) {
    const expected = '400 Bad Request: expected a JSON object as the body'
    assert.equal(await refusalOf({ type: json, body }), expected)
  }
})

const parameterSets = fc.dictionary(
  fc
    .string({ minLength: 1, maxLength: 20, unit: 'grapheme' })
    .filter((name) => !/["\\\r\n]/.test(name)),
  fc.string({ maxLength: 40, unit: 'grapheme' }),
  { maxKeys: 8 },
)

test('the same parameters have the same values in query, form, JSON and multipart', async () => {
  await fc.assert(
    fc.asyncProperty(parameterSets, async (set) => {
      const entries = Object.entries(set)
      const encoded = new URLSearchParams(entries).toString()
      const readings = await Promise.all([
        read({ query: encoded }),
        read({ type: form, body: encoded }),
        read({ type: json, body: JSON.stringify(Object.fromEntries(entries)) }),
        read({ type: multipart, body: parts(...entries.map(([name, text]) => part(name, text))) }),
      ])
      for (const [name, text] of entries) {
        // A text that contains a boundary line cannot be sent with this boundary.
        if (/^--B/m.test(text)) continue
        const expected = text === '' ? undefined : text
        assert.deepEqual(
          readings.map((params) => params.text(name)),
          [expected, expected, expected, expected],
        )
      }
    }),
    { numRuns: drawnRuns(300) },
  )
})

test('random bytes of any Content-Type are read or refused, and never crash the server', async () => {
  const pieces = [
    '--B',
    '--B--',
    '\r\n',
    '\n',
    'Content-Disposition: form-data; name="a"',
    '=',
    '&',
    '%',
    '{',
    '"',
    ':',
    ';',
    '\\',
  ]
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)),
    fc.array(fc.constantFrom(...pieces), { maxLength: 30 }).map((all) => Buffer.from(all.join(''))),
  )
  const types = fc.constantFrom(json, form, multipart, 'multipart/form-data; boundary="', 'x')
  const encodings = fc.constantFrom(undefined, 'gzip', 'deflate')
  await fc.assert(
    fc.asyncProperty(bytes, types, encodings, async (body, type, encoding) => {
      const headers = encoding === undefined ? {} : { 'content-encoding': encoding }
      assert.match(
        await refusalOf({ type, headers, body, query: body.toString('latin1') }),
        /^(accepted|400 )/,
      )
    }),
    { numRuns: drawnRuns(1_000) },
  )
})
