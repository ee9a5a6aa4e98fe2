import assert from 'node:assert/strict'
import { test } from 'node:test'
import { updateTypes } from '../../../../src/kit/update-types.ts'
import {
  accept,
  checkUpdate,
  refusalOf,
  refuse,
} from '../../../support/producers/update-verdict.ts'

const payload = (json: string) => `{"message":{"a":${json}}}`

test('every one of the 22 types is accepted, and the text is everything between the outer braces', () => {
  for (const type of updateTypes) {
    assert.deepEqual(accept(`{"${type}":{"id":1}}`), { type, text: `"${type}":{"id":1}` })
  }
})

test('white space is allowed everywhere and kept within the text', () => {
  assert.deepEqual(accept(' \t\r\n{ \n"poll" :\t{ "a" : [ 1 , 2 ] , "b" : { } } \r} \n'), {
    type: 'poll',
    text: '"poll" :\t{ "a" : [ 1 , 2 ] , "b" : { } }',
  })
})

test('the text is a view and keeps big numbers, key order, duplicate inner keys and escapes', () => {
  const bytes = Buffer.from('{"message":{"b":123456789012345678901,"a":"\\u0041\\/","b":1e9}}')
  const { text } = checkUpdate(bytes)
  assert.equal(text.buffer, bytes.buffer)
  assert.equal(text.toString(), '"message":{"b":123456789012345678901,"a":"\\u0041\\/","b":1e9}')
})

test('everything except exactly one key, a type written without escapes, with an object is refused', () => {
  for (const json of [
    '',
    ' ',
    '{}',
    '[]',
    'null',
    '1',
    '"message"',
    '[{"message":{}}]',
    '{"message":{}',
    '{"message"}',
    '{"message":}',
    '{"message":[]}',
    '{"message":1}',
    '{"message":null}',
    '{"message":"{}"}',
    '{"message":{}}x',
    '{"message":{}}{}',
    '{"message":{}},',
    '{"message":{},}',
    '{,"message":{}}',
    '{"message":{},"message":{}}',
    '{"message":{},"poll":{}}',
    '{"message":{},"update_id":1}',
    '{"update_id":1,"message":{}}',
    '{"update_id":{}}',
    '{"Message":{}}',
    '{"messag":{}}',
    '{"":{}}',
    '{"messagf":{}}',
    '{"pol":{}}',
    '{"polls":{}}',
    '{"message ":{}}',
    '{"\\u006dessage":{}}',
    '{"mess\\u0061ge":{}}',
    "{'message':{}}",
    '{message:{}}',
    '{"message":{}}\0',
    '\0{"message":{}}',
    '\ufeff{"message":{}}',
    '{"message":{}}\ufeff',
    '{"message":{}}\u00a0',
    '{"message"\u000b:{}}',
    '{"message"::{}}',
    '{"message":{}}}',
    '{{"message":{}}}',
    '{"message',
    '{"',
    '{',
  ])
    refuse(json)
})

test('values are exactly JSON', () => {
  for (const json of [
    '0',
    '-0',
    '1',
    '-1',
    '10',
    '0.5',
    '-0.5e+10',
    '1E5',
    '1e-5',
    '1.0E+2',
    '123e65',
    '0e1',
    '1e400',
    'true',
    'false',
    'null',
    '""',
    '"\u007f"',
    '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u12aF"',
    '"\\u0000"',
    '"é\u2028😀"',
    '"\\ud83d\\ude00"',
    '"\\uD83D\\uDE00x"',
    '"\\uDBFF\\uDFFF"',
    '"\\ud7ff\\ue000"',
    '"\\ud800\\udc00\\ud800\\udc00"',
    '[]',
    '{}',
    '[[]]',
    '[{}]',
    '[1,2]',
    '{"":0}',
    '{"\\u0061":1}',
    '{"a":{"b":[]},"c":[{}]}',
    '"\uffff"',
  ])
    assert.doesNotThrow(() => JSON.parse(payload(json)) && accept(payload(json)), json)
  for (const json of [
    '',
    '+1',
    '01',
    '-01',
    '-',
    '.5',
    '1.',
    '1.e1',
    '1e',
    '1e+',
    '0x1',
    '1_0',
    'NaN',
    'Infinity',
    '-Infinity',
    'tru',
    'True',
    'truex',
    'nul',
    'nulll',
    'falsee',
    'undefined',
    "'a'",
    '"a',
    'a"',
    '"\\x41"',
    '"\\u12g4"',
    '"\\u123"',
    '"\\U1234"',
    '"\\',
    '"\\"',
    '"\n"',
    '"\t"',
    '"\0"',
    '"\u001f"',
    '[',
    ']',
    '[1',
    '[1,]',
    '[,1]',
    '[1 2]',
    '[1}',
    '{"a":1]',
    '{a:1}',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{,}',
    '{"a" 1}',
    '{"a"::1}',
    '{1:1}',
    '1 1',
    '1,',
    '"a""b"',
    '[]]',
    '1}',
    '//',
    '/**/1',
    '1//',
    '\u00a01',
    '\ufeff1',
    '-a',
    '1ee1',
    '1.2.3',
    '--1',
    '1-1',
    '[--]',
    '{"a\n":1}',
    '{"\\q":1}',
  ])
    refuse(payload(json))
})

test('a lone surrogate escape is refused in values and in keys, however it is hidden', () => {
  for (const string of [
    '"\\ud800"',
    '"\\udc00"',
    '"\\uDFFF"',
    '"\\udbff\\udbff"',
    '"\\ud800x"',
    '"\\ud800\\n"',
    '"\\ud800\\u0041"',
    '"\\ude00\\ud83d"',
    '"\\ud83d\\ude00\\ude00"',
    '"\\ud83d\\ud83d\\ude00"',
    '"\\ud800\\ue000"',
    '"\\ud800 \\udc00"',
  ]) {
    refuse(payload(string))
    refuse(payload(`{${string}:1}`))
    assert.doesNotThrow(() => JSON.parse(payload(string)))
  }
  accept(payload('"\\\\ud800"'))
})

test('bytes that are not UTF-8 are refused, and the message names the first invalid byte', () => {
  for (const bad of ['80', 'c080', 'c3', 'eda080', 'f4908080', 'ff', 'e282', 'f09f98']) {
    const before = Buffer.from('{"message":{"a":"é')
    refuse(Buffer.concat([before, Buffer.from(bad, 'hex'), Buffer.from('"}}')]))
  }
  const bytes = Buffer.concat([Buffer.from('{"message":{"a":"é'), Buffer.from('ff227d7d', 'hex')])
  assert.match(refusalOf(bytes), /expected valid UTF-8 at byte 19, got /)
})

test('a nesting of 64 is accepted and of 65 refused, in arrays, objects and both', () => {
  const nested = (open: string, close: string, depth: number) =>
    payload(open.repeat(depth) + (open === '[' ? '' : '1') + close.repeat(depth))
  accept(nested('[', ']', 62))
  refuse(nested('[', ']', 63))
  accept(nested('{"a":', '}', 62))
  refuse(nested('{"a":', '}', 63))
  accept(payload(`[${'[{"a":'.repeat(30)}1${'}]'.repeat(30)},[[[[]]]]]`))
  refuse(payload(`[${'['.repeat(100_000)}`))
  assert.match(
    refusalOf(nested('[', ']', 63)),
    /expected nesting of at most 64 at byte 78, got \[$/,
  )
})

function says(json: string, expected: string): void {
  assert.equal(refusalOf(json), `Bad update: expected ${expected}`)
}

test('a refusal says what was expected and at which byte', () => {
  says('[1]', 'an object at byte 0, got [')
  says('{}', 'exactly one key, the type of the update, at byte 1, got }')
  says('{"update_id":1}', 'no update_id, which the server assigns, at byte 1')
  const types = `one of the 22 update types as the only key, without escapes, at byte 1`
  says('{"chat":{}}', `${types}, got "chat": ${updateTypes.join(', ')}`)
  says('{"100:AAAA":{}}', `${types}, got something else: ${updateTypes.join(', ')}`)
  says('{"poll":{},"poll":{}}', 'exactly one key at byte 10, got ,')
  says('{"poll":7}', 'an object as the value of the type at byte 8, got 7')
  says('{"poll":{"a":[{}}}', '"," or "]" at byte 16, got }')
  says('{"poll":{"a":"\\q"}}', 'an escape in a string at byte 15, got q')
  says('{"poll":{"a":tru}}', 'the rest of "true" after "tru" at byte 16, got }')
  says('{"poll":{"a":1}', '"}" after the only key at byte 15, got the end')
  says('{"poll":{"a":[]', '"," or "}" at byte 15, got the end')
  says(
    '{"poll":{}}{"poll":{}}',
    'nothing after the update (POST /v1/updates takes many) at byte 11, got {',
  )
})

test('every prefix of an update is refused', () => {
  const json = Buffer.from('{"message":{"a":[1.5e+1,true,"\\ud83d\\ude00é"],"b":{"c":null}}}')
  accept(json)
  for (let length = 0; length < json.length; length++) refuse(json.subarray(0, length))
})
