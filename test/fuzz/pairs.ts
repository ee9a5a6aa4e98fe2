/** NDJSON streams of pairs. Each pair has a known result and at most one error. */
import fc from 'fast-check'
import type { WireCase, World } from './wire-case.ts'
import { bytesOf, framing } from './encodings.ts'
import { headers } from './headers.ts'

/** Latin-1: one character, one byte. */
interface Pair {
  readonly lines: string
  readonly code: string
}

/** `#` stands for a bot's id. */
const goodHeaders = [
  '{"bot_id":#}',
  '{"bot_id":#,"ordering_key":7}',
  '{"bot_id":#,"ordering_key":"\\u00e9","ttl":60,"test":true}',
  ' { "ttl" : null , "bot_id" : # } ',
  '{"\\u0062ot_id":#,"ordering_key":""}',
  '{"bot_id":#,"idempotency_key":"x"}',
]
const badHeaders = [
  '[]',
  '{',
  '"x"',
  'null',
  '{}',
  '{"bot_id":"#"}',
  '{"bot_id":-#}',
  '{"bot_id":0}',
  '{"bot_id":1e400}',
  '{"bot_id":#.5}',
  '{"bot_id":0#}',
  '{"bot_id":9007199254740993}',
  '{"bot_id":[#]}',
  '{"bot_id":#,"ttl":-1}',
  '{"bot_id":#,"ttl":1e400}',
  '{"bot_id":#,"more":1}',
  '{"bot_id":#,"bot_id":1#}',
  '{"bot_id":#,"test":"true"}',
  '{"bot_id":#,"idempotency_key":""}',
  '{"bot_id":#,"idempotency_key":"\xc3\xa9"}',
  `{"bot_id":#,"idempotency_key":"${'x'.repeat(2_000)}"}`,
  `{"bot_id":#,"ordering_key":"${'x'.repeat(3_000)}"}`,
  '{"bot_id":#,"ordering_key":"\\ud800"}',
  '{"bot_id":#}x',
  '{"bot_id":#}\0',
  // Only one at the beginning of a stream is skipped.
  ' \xef\xbb\xbf{"bot_id":#}',
  '{"bot_id":#,"ordering_key":"\xff"}',
  '{\0"\0b\0',
  `{"bot_id":#,"ordering_key":${'['.repeat(3_000)}`,
]
const goodUpdates = [
  '{"chat_member":{}}',
  ' {"chat_member":{"a":[1e400,-0,123456789012345678901234567890]}} \t',
  `{"chat_member":${'{"a":'.repeat(62)}{}${'}'.repeat(62)}}`,
  '{"chat_member":{"a":1,"a":2,"":"\\ud83d\\ude00\\u0000"}}',
]
const badUpdates = [
  '',
  ' ',
  '{}',
  '[]',
  'null',
  '{"chat_member":1}',
  '{"chat_member":[]}',
  '{"chat_member":{}}x',
  '{"chat_member":{}}{"chat_member":{}}',
  '{"chat_member":{},}',
  '{"chat_member":{},"chat_member":{}}',
  '{"update_id":1,"chat_member":{}}',
  '{"chat_member":{},"message":{}}',
  '{"Chat_member":{}}',
  '{"chat\\u005fmember":{}}',
  '{"__proto__":{}}',
  '{"chat_member":{"a":"\\ud800"}}',
  '{"chat_member":{"a":"\\udc00\\ud800"}}',
  '{"chat_member":{"a":"\xff"}}',
  '{"chat_member":{"a":"\xc0\xaf"}}',
  '{"chat_member":{"a":"\xed\xa0\x80"}}',
  '{"chat_member":{"a":"\t"}}',
  '{"chat_member":{"a":"\\x"}}',
  '{"chat_member":{"a":01}}',
  '{"chat_member":{"a":1.}}',
  '{"chat_member":{"a":NaN}}',
  '{"chat_member":{"a":/**/1}}',
  "{'chat_member':{}}",
  '{"chat_member":{}',
  '\0',
  ' \xef\xbb\xbf{"chat_member":{}}',
  '\xff\xfe{\0"\0',
  `{"chat_member":${'{"a":'.repeat(63)}{}${'}'.repeat(63)}}`,
  `{"chat_member":{"a":${'['.repeat(10_000)}`,
  `{"chat_member":{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}}`,
]
const longHeader = `{"bot_id":#}${' '.repeat(5_000)}`

const pair: fc.Arbitrary<Pair> = fc
  .tuple(
    fc.oneof(
      { weight: 5, arbitrary: pairsOf(goodHeaders, goodUpdates, 'filtered') },
      { weight: 4, arbitrary: pairsOf(badHeaders, goodUpdates, 'BAD_REQUEST') },
      { weight: 4, arbitrary: pairsOf(goodHeaders, badUpdates, 'BAD_UPDATE') },
      { weight: 1, arbitrary: pairsOf(['{"bot_id":98765}'], goodUpdates, 'UNKNOWN_BOT') },
      { weight: 1, arbitrary: pairsOf([longHeader], goodUpdates, 'UPDATE_TOO_LARGE') },
    ),
    fc.constantFrom('\n', '\n', '\r\n'),
    // Empty lines between pairs have no meaning.
    fc.constantFrom('', '', '\n', '\r\n\n'),
  )
  .map(([{ lines, code }, end, blank]) => ({
    lines: `${lines.replace('\n', end)}${end}${blank}`,
    code,
  }))

const tail: fc.Arbitrary<Pair | undefined> = fc.oneof(
  { weight: 5, arbitrary: fc.constant(undefined) },
  // The last line needs no line end.
  { weight: 2, arbitrary: pairsOf(goodHeaders, goodUpdates, 'filtered') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      { lines: '{"bot_id":#}', code: 'BAD_REQUEST' },
      { lines: '{"bot_id":#}\n', code: 'BAD_REQUEST' },
      { lines: '\0', code: 'BAD_REQUEST' },
    ),
  },
)

function pairsOf(
  ofHeaders: readonly string[],
  updates: readonly string[],
  code: string,
): fc.Arbitrary<Pair> {
  return fc
    .tuple(fc.constantFrom(...ofHeaders), fc.constantFrom(...updates))
    .map(([header, update]) => ({ lines: `${header}\n${update}`, code }))
}

/** A pair with an update that is too large, which is skipped and costs as much as 100 others. */
const large: fc.Arbitrary<Pair> = fc.constantFrom(530_000, 700_000).map((bytes) => ({
  lines: `{"bot_id":#}\n{"chat_member":{"a":"${'x'.repeat(bytes)}"}}\n`,
  code: 'UPDATE_TOO_LARGE',
}))

export function pairStreams(world: World): fc.Arbitrary<WireCase> {
  const ids = fc.shuffledSubarray(
    world.loose.map(({ botId }) => `${botId}`),
    { minLength: 3, maxLength: 5 },
  )
  const few = fc.array(pair, { maxLength: 20, size: 'max' })
  const pairs = fc.oneof(
    { weight: 60, arbitrary: few },
    { weight: 1, arbitrary: fc.tuple(few, large, few).map(([a, b, c]) => [...a, b, ...c]) },
    { weight: 1, arbitrary: fc.array(pair, { minLength: 200, maxLength: 400, size: 'max' }) },
  )
  return fc.record({ pairs, tail, ids, framing, headers }).map(({ pairs: whole, ...how }) => {
    const all = how.tail === undefined ? whole : [...whole, how.tail]
    const idOf = (nth: number): string => how.ids[nth % how.ids.length] ?? ''
    const text = all.map(({ lines }, nth) => lines.replaceAll('#', idOf(nth))).join('')
    return {
      name: `a stream of ${all.length} pairs`,
      bytes: bytesOf({
        verb: 'POST',
        target: '/v1/updates',
        headers: [
          `Authorization: Bearer ${world.adminKey}`,
          // Host and key matter here.
          ...how.headers.filter((line) => !/^(?:host|authorization):/i.test(line)),
        ],
        body: {
          contentType: 'application/x-ndjson',
          bytes: Buffer.from(text, 'latin1'),
          coding: '',
          framing: how.framing,
        },
      }),
      expected: {
        kind: 'answer' as const,
        told: { status: 200, codes: all.map(({ code }) => code) },
      },
    }
  })
}
