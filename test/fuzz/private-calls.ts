/** Odd calls of the private listener: its routes with any ids, queries and bodies, with the key or without it. */
import fc from 'fast-check'
import { apiOperations } from '../../src/modules/api-operations.ts'
import { bytesOf, coding, framing } from './encodings.ts'
import { headers } from './headers.ts'
import { junkJson, junkText, query } from './junk.ts'
import { pairStreams } from './pairs.ts'
import type { WireCase, World } from './wire-case.ts'

/** Valid updates of a type that no bot wants, so that even a good push stores nothing, and invalid ones. */
const update = fc.oneof(
  fc.constantFrom(
    '{"chat_member":{}}',
    ' {"chat_member":{"a":[1]}} ',
    '{"chat_member":1}',
    '{}',
    '',
  ),
  junkJson,
  junkJson.map((text) => `{"chat_member":${text}}`),
)
const pair = fc
  .tuple(
    fc.constantFrom(
      '{"bot_id":#}',
      '{"bot_id":1}',
      '{"bot_id":#,"ttl":-1}',
      '[]',
      '',
      '{"bot_id":"#"}',
    ),
    update,
    fc.constantFrom('\n', '\r\n', '\n\n', ''),
  )
  .map(([header, text, end]) => `${header}\n${text.replaceAll('\n', ' ')}${end}`)
const pairs = fc.array(pair, { maxLength: 4 }).map((texts) => texts.join(''))
const registration = fc.oneof(
  junkJson,
  fc.constantFrom(
    '{"first_name":"a"}',
    '{"first_name":"a","username":"ö"}',
    '{"first_name":"\\ud800","username":"a"}',
    '{"bot_id":1,"first_name":"a","username":"a"}',
    '{"bot_id":1e300,"first_name":"a","username":"a"}',
    '{"first_name":"a","username":"a","more":1}',
  ),
)

const signingKey = fc.oneof(
  junkJson,
  fc.constantFrom('{"type":"ed25519"}', '{"type":"hmac-sha256","overlap":1}', '{"type":"md5"}'),
)

const deliveryLimit = fc.oneof(
  junkJson,
  fc
    .constantFrom('5', '1e3', 'null', '0', '"5"', '1e999')
    .map((value) => `{"deliveries_per_second":${value}}`),
)

const retention = fc.oneof(
  junkJson,
  fc
    .constantFrom('5', '1.5', 'null', '0', '"5"', '-1', '1e999')
    .map((value) => `{"retain":${value},"retain_bytes":null}`),
)

interface Route {
  readonly verb: string
  /** `#` stands for a bot's id. */
  readonly path: string
  readonly body?: fc.Arbitrary<string> | undefined
}

/** Bodies that come close to those of the calls. */
const bodiesOf: Readonly<Record<string, fc.Arbitrary<string>>> = {
  createBot: registration,
  addSigningKey: signingKey,
  setLimits: deliveryLimit,
  setRetention: retention,
  pushUpdate: update,
  pushUpdates: pairs,
}
/** The loose bots are used all the time, and the end of a session has two cookies, where a header may come once. */
const leftOut: ReadonlySet<string> = new Set(['removeBot', 'rotateToken', 'endSession'])
const sent = apiOperations.filter(
  ({ id, lasts }) => !leftOut.has(id) && (lasts !== true || id === 'pushUpdates'),
)

/** All calls but those that are left out or last; and what is no call at all. */
const routes: readonly Route[] = [
  ...sent.map(({ id, method, path }) => ({
    verb: method,
    path: path.replace(':id', '#').replaceAll(/:\w+/g, '1'),
    body: bodiesOf[id] ?? (method === 'GET' || method === 'HEAD' ? undefined : junkJson),
  })),
  { verb: 'DELETE', path: '/v1/bots/#/signing-keys/%2525' },
  { verb: 'POST', path: '/v1/bots/#/retry?ordering_key=a', body: junkJson },
  { verb: 'GET', path: '/v1/bots/#/dead-letters/1e9' },
  { verb: 'DELETE', path: '/v1/bots/#/dead-letters/2147483648' },
  { verb: 'HEAD', path: '/v1/bots/#' },
  { verb: 'OPTIONS', path: '*' },
  { verb: 'TRACE', path: '/v1/bots/#' },
  { verb: 'GET', path: 'http://other.example/v1/bots/#' },
  { verb: 'GET', path: '//v1/bots/#' },
  { verb: 'GET', path: '/v1/bots/#;a=b/updates' },
  { verb: 'GET', path: `/v1/bots/#/dead-letters/${'1'.repeat(300)}` },
  { verb: 'POST', path: '/v1/bots/#/updates', body: update },
  { verb: 'POST', path: '/v1/updates', body: pairs },
  { verb: 'POST', path: '/v1/bots/1/token', body: junkJson },
  { verb: 'DELETE', path: '/v1/bots/99', body: junkJson },
  { verb: 'PUT', path: '/v1/bots/#', body: junkJson },
  { verb: 'PROPFIND', path: '/' },
  { verb: 'GET', path: '/internal/bot-list' },
  { verb: 'POST', path: '/internal/bot-list', body: junkJson },
  { verb: 'POST', path: '/internal/summary', body: junkJson },
  { verb: 'GET', path: '/v1/bots?sort=pending&limit=3' },
  { verb: 'GET', path: '/v1/bots?state=stuck&prefix=%25' },
  { verb: 'GET', path: '/v1/bots/%00' },
  { verb: 'GET', path: '/v1/%' },
]

const pushQuery = fc.oneof(
  fc.constantFrom(
    '',
    '',
    '?ttl=5',
    '?ordering_key=a&ttl=0',
    '?test=true',
    '?ttl=x',
    '?limit=0&after=-1',
  ),
  query.map((text) => `?${text}`),
)
const contentTypes = fc.constantFrom(
  'application/json',
  'application/json; charset=utf-16',
  'application/x-ndjson',
  '',
  'x',
  ';;;',
  'a/b/c',
  'text/plain; charset="',
  `text/${'x'.repeat(3_000)}`,
  '\xff',
)
const keyHeaders = fc.constantFrom(
  '',
  '',
  '',
  'Idempotency-Key: a',
  `Idempotency-Key: ${'x'.repeat(500)}`,
)

export function privateCalls(world: World): fc.Arbitrary<WireCase> {
  const authorization = fc.oneof(
    { weight: 9, arbitrary: fc.constant(`Bearer ${world.adminKey}`) },
    fc.constantFrom('Bearer', 'Bearer x', 'Basic eDp5', ''),
    junkText.map((text) => `Bearer ${text.replaceAll(/[^ -~]/g, '')}`),
  )
  const ids = fc.constantFrom(
    ...world.loose.map(({ botId }) => `${botId}`),
    '1',
    '0',
    '-1',
    '1e3',
    'x',
    ...world.loose.map(({ botId }) => `%3${botId}`),
  )
  const anyRoute = fc.constantFrom(...routes).chain(({ verb, path, body }) =>
    fc.record({
      verb: fc.constant(verb),
      path: fc.constant(path),
      body: body ?? fc.constant(undefined),
      id: ids,
      behind: pushQuery,
      authorization,
      keyHeader: keyHeaders,
      headers,
      contentType: contentTypes,
      coding,
      framing,
    }),
  )
  const any = anyRoute.map(({ verb, path, body, id, behind, contentType, ...how }) => {
    const more = [`Authorization: ${how.authorization}`, how.keyHeader, ...how.headers]
    const text = body?.replaceAll('#', id)
    const isHead = verb === 'HEAD'
    return {
      name: `${verb} ${path}`,
      bytes: bytesOf({
        verb,
        target: `${path.replace('#', id)}${behind}`,
        // The Host matters here, and each request has its own.
        headers: more.filter(
          (line) => line !== '' && !/^host:|^authorization: bearer x$/i.test(line),
        ),
        body:
          text === undefined
            ? undefined
            : { contentType, bytes: Buffer.from(text), coding: how.coding, framing: how.framing },
      }),
      expected: { kind: 'answer' as const },
      isHead,
    }
  })
  return fc.oneof({ weight: 4, arbitrary: any }, { weight: 1, arbitrary: pairStreams(world) })
}
