import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkRows, loadNativeCheck } from '../../../../src/queue/check/check-batch.ts'
import { deriveOrderingKey, subjectOfKey } from '../../../../src/queue/check/ordering-key.ts'
import { producerKey, UpdateRows } from '../../../../src/shard/update-rows.ts'
import { type UpdateType, updateTypes } from '../../../../src/kit/update-types.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'
import { checkUpdate } from '../../../support/producers/update-verdict.ts'

function keyOf(json: string): string {
  const { typeNumber, text } = checkUpdate(Buffer.from(json))
  return deriveOrderingKey(typeNumber, text)
}

function keyIn(type: string, payload: unknown): string {
  return keyOf(JSON.stringify({ [type]: payload }))
}

/** For each class, the paths of the ids and the types. */
const classes: [paths: string[], types: UpdateType[]][] = [
  [['chat.id'], ['message', 'edited_message', 'channel_post', 'edited_channel_post']],
  [
    ['business_connection_id', 'chat.id'],
    ['business_message', 'edited_business_message', 'deleted_business_messages'],
  ],
  [
    ['from.id'],
    [
      'inline_query',
      'chosen_inline_result',
      'callback_query',
      'shipping_query',
      'pre_checkout_query',
    ],
  ],
  [['new_chat_member.user.id'], ['chat_member']],
  [['from.id'], ['chat_join_request']],
  [['chat.id'], ['my_chat_member']],
  [['chat.id'], ['chat_boost', 'removed_chat_boost']],
  [['chat.id'], ['message_reaction']],
  [['chat.id'], ['message_reaction_count']],
  [['user.id'], ['business_connection']],
  [['id'], ['poll']],
  [['poll_id'], ['poll_answer']],
]
const pathsOf = new Map<string, string[]>(
  classes.flatMap(([paths, types]) => types.map((type) => [type, paths])),
)

/** A payload in which every path that any class uses leads to a different id. */
const everything = {
  id: 1,
  poll_id: 2,
  business_connection_id: 'c',
  chat: { id: 3 },
  from: { id: 4 },
  user: { id: 5 },
  new_chat_member: { user: { id: 6 } },
}

test('the types of one class share keys, and classes never do', () => {
  const keys = new Map<string, string>()
  for (const [paths, types] of classes) {
    const [key, ...more] = new Set(types.map((type) => keyIn(type, everything)))
    assert.deepEqual(more, [], types.join())
    assert.ok(key !== undefined && key !== '')
    keys.set(key, paths.join())
  }
  assert.equal(keys.size, 12)
  assert.equal(pathsOf.size, updateTypes.length)
})

test('an invited member and one who joined are one person', () => {
  assert.equal(
    keyIn('chat_member', {
      from: { id: 1 },
      chat: { id: 2 },
      new_chat_member: { user: { id: 7 } },
    }),
    keyIn('chat_join_request', { chat: { id: 3 }, from: { id: 7 } }),
  )
})

test('business updates of two connections or two chats are independent', () => {
  const businessKeys = ['a', 'b'].flatMap((connection) =>
    [1, 2].map((id) =>
      keyIn('business_message', { business_connection_id: connection, chat: { id } }),
    ),
  )
  assert.equal(new Set(businessKeys).size, 4)
})

test('an update without a key of its own gets the common key', () => {
  for (const type of updateTypes) {
    for (const payload of [
      {},
      { chat: 1 },
      { chat: { id: null }, from: { id: {} }, user: { id: [1] } },
      { id: true, poll_id: '' },
    ]) {
      assert.equal(keyIn(type, payload), '', type)
    }
  }
})

test('only the exact path counts, wherever it is', () => {
  for (const before of [
    '"text":"\\"chat\\":{\\"id\\":5}"',
    '"reply_to_message":{"chat":{"id":5}}',
    '"x":[{"chat":{"id":5}}]',
    '"chat_id":5',
    '"cha":{"id":5}',
    '"a":"}"',
    '"a":"\\\\"',
    '"a":["]","[","{\\""]',
    '"a":-1.5e+3',
    '"a":null',
    '"a":[]',
    '"a":{}',
    '"":0',
    '"id":5',
    '"é":"é"',
    '"chatt":{"id":5}',
    '"Chat":{"id":5}',
    '"\\u0063":1',
    '"a\\"":{"b":1}',
    '"chat\\u0000":{"id":5}',
  ]) {
    for (const inner of [
      '',
      '"name":"id", ',
      '"x":{"id":6},',
      '"idd":6,',
      '"i":"id",',
      '"\\"id":6,',
    ]) {
      assert.equal(
        keyOf(`{"message":{${before} , "chat" : {${inner}"id" : -100 , "z":1}}}`),
        'm-100',
        before + inner,
      )
    }
  }
})

test('a key that is written with escapes is the same key', () => {
  assert.equal(keyOf('{"message":{"ch\\u0061t":{"\\u0069d":7}}}'), 'm7')
  assert.equal(keyOf('{"poll":{"\\u0069\\u0064":"\\u0035"}}'), 'p5')
})

test('ids keep their digits, may be strings, and equal numbers are equal', () => {
  assert.equal(keyOf('{"poll":{"id":90071992547409931}}'), 'p90071992547409931')
  assert.equal(keyOf('{"poll":{"id":"5930000000000000001"}}'), 'p5930000000000000001')
  assert.equal(keyOf('{"poll":{"id":"é\\n"}}'), 'pé\n')
  assert.equal(keyOf('{"poll":{"id":1e3}}'), 'p1000')
  assert.equal(keyOf('{"poll":{"id":1000.0}}'), 'p1000')
  assert.equal(keyOf('{"poll":{"id":-7}}'), 'p-7')
})

test('an extremely long id still makes a short key, and another id another key', () => {
  const one = keyOf(`{"poll":{"id":"${'x'.repeat(10_000)}"}}`)
  assert.ok(one.length < 64)
  assert.notEqual(one, keyOf(`{"poll":{"id":"${'x'.repeat(10_001)}"}}`))
  assert.ok(keyOf(`{"poll":{"id":1${'0'.repeat(10_000)}}}`).length < 64)
})

test('keys of a producer never equal derived ones', () => {
  for (const key of ['', 'm3', '3', '=', 'm-100']) {
    assert.ok(!['', keyIn('message', everything)].includes(producerKey(key)))
    assert.match(producerKey(key), /^=/)
  }
  assert.notEqual(producerKey('a'), producerKey('b'))
})

function isRecord(of: unknown): of is Record<string, unknown> {
  return typeof of === 'object' && of !== null && !Array.isArray(of)
}

/** Derives the same key with JSON.parse. */
function keyByParse(type: string, payload: unknown): string {
  const ids = (pathsOf.get(type) ?? []).map((path) => {
    let at: unknown = payload
    for (const name of path.split('.')) {
      at = isRecord(at) && Object.hasOwn(at, name) ? at[name] : undefined
    }
    return typeof at === 'number' || typeof at === 'string' ? `${at}` : ''
  })
  if (ids.every((id) => id === '')) return ''
  return ids.join('/')
}

test('the scan finds what JSON.parse finds in any payload', () => {
  const names = [
    'id',
    'chat',
    'from',
    'user',
    'poll_id',
    'new_chat_member',
    'business_connection_id',
    'x',
    'chat"',
    '\\',
    'é',
  ]
  const id = fc.oneof(
    fc.maxSafeInteger(),
    fc.string({ unit: 'grapheme', maxLength: 8 }),
    fc.constantFrom('"', '\\', '}', '{"id":1}'),
    fc.constant(null),
    fc.boolean(),
  )
  const { node } = fc.letrec<{ node: unknown; object: unknown }>((tie) => ({
    node: fc.oneof(
      { depthSize: 'small' },
      id,
      tie('object'),
      fc.array(tie('node'), { maxLength: 3 }),
    ),
    object: fc.dictionary(fc.constantFrom(...names), tie('node'), { maxKeys: 8 }),
  }))
  const payload = fc.dictionary(fc.constantFrom(...names), node, { maxKeys: 11 })
  let found = 0
  fc.assert(
    fc.property(fc.constantFrom(...updateTypes), payload, fc.nat(2), (type, content, indent) => {
      const expected = keyByParse(type, content)
      const key = keyOf(JSON.stringify({ [type]: content }, null, indent))
      assert.equal(key.slice(1), expected)
      if (expected !== '') found++
    }),
    { numRuns: drawnRuns(3_000) },
  )
  assert.ok(found > drawnRuns(3_000) / 100, `${found} payloads had an id`)
})

test('on bytes that are no update the scan ends, whatever it returns', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...'"\\{}[]:,1a '.split('')), { maxLength: 60 }),
      (bytes) => {
        const text = Buffer.from(`"message":{${bytes.join('')}`)
        try {
          deriveOrderingKey(0, text)
        } catch (error) {
          assert.ok(error instanceof SyntaxError)
        }
      },
    ),
    { numRuns: drawnRuns(2_000) },
  )
})

test('of members with the same name the last one counts, as in JSON.parse', () => {
  for (const [payload, key] of [
    ['"chat":{"id":1,"id":2}', 'm2'],
    ['"chat":{"id":1},"chat":{"id":2}', 'm2'],
    ['"chat":{"id":1},"chat":{"id":2,"id":3}', 'm3'],
    ['"chat":{"id":1},"x":{"id":9},"ch\\u0061t":{"id":2}', 'm2'],
    ['"chat":{"id":1},"chat":5', ''],
    ['"chat":{"id":1},"chat":{}', ''],
    ['"chat":{"id":1,"id":null}', ''],
    ['"chat":5,"chat":{"id":1},"id":2', 'm1'],
    ['"chat":{"x":{"id":4},"id":1,"x":{"id":5}}', 'm1'],
  ] as const) {
    const json = `{"message":{${payload}}}`
    assert.equal(keyOf(json), key, json)
    assert.equal(nativeKeyOf(json), key, json)
  }
})

/** The key that checkRows finds, by the native code where that decides. */
function nativeKeyOf(json: string): string {
  loadNativeCheck()
  const options = { orderingKey: undefined, ttlS: undefined, idempotencyKey: undefined }
  const flags = { isTest: false, isValidated: false }
  const rows = UpdateRows.ofOne(Buffer.from(json), 100, { ...options, ...flags })
  checkRows(rows)
  return rows.orderingKeyOf(0)
}

function subject(type: string, payload: unknown): unknown {
  return subjectOfKey(keyIn(type, payload))
}

test('a stored key tells whether it is the key of a chat or of a user', () => {
  assert.equal(subject('message', { chat: { id: 7 } }), 'chat')
  assert.equal(
    subject('business_message', { business_connection_id: 'a', chat: { id: 7 } }),
    'chat',
  )
  assert.equal(subject('callback_query', { from: { id: 7 } }), 'user')
  assert.equal(subject('chat_member', { new_chat_member: { user: { id: 7 } } }), 'user')
  assert.equal(subject('poll', { id: '7' }), undefined)
  assert.equal(subjectOfKey(producerKey('m7')), undefined)
  assert.equal(subjectOfKey(''), undefined)
})
