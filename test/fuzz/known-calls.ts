/** Calls with a known response, in every encoding (encodings.ts). The response must be that of the plainest form. */
import fc from 'fast-check'
import { bytesOf, coding, encodedCall, framing, type Parameters } from './encodings.ts'
import { headers } from './headers.ts'
import type { ExactAnswer, SteadyBot, WireCase, World } from './wire-case.ts'

interface KnownCall {
  readonly name: string
  readonly method: string
  readonly parameters: Parameters
  readonly exactly: ExactAnswer
}

/** Above every id, so that nothing is confirmed. Two calls must not draw the same offset, which would shorten the list. */
const harmlessOffset = fc.noBias(fc.integer({ min: 2 ** 31, max: 2 ** 52 }))
const blanks = fc.constantFrom('', ' ', '\t', '\n')
/** As proxies write them, and attackers that look for a way around a proxy. */
const authorities = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  fc.constantFrom('http://other.example', 'https://u:p@[::1]:1', 'x://y'),
)
/** The characters of the path that are encoded. */
const encoded = fc.constantFrom(/^$/, /^$/, /^$/, /:/, /\d/, /[a-m]/i, /./)
/** These must not include a parameter with a meaning. */
const unknownParameters: fc.Arbitrary<Parameters> = fc.constantFrom<Parameters[]>(
  [],
  [],
  [['suppress', 'true']],
  [
    ['method', 'getMe'],
    ['allowed_updates[0]', 'message'],
  ],
  [
    ['__proto__', 'x'],
    ['constructor', '{}'],
    ['toString', '\u{1f600} é'],
  ],
)

export function knownCalls(world: World): fc.Arbitrary<WireCase> {
  const bot = fc.constantFrom(...world.steady)
  return fc.oneof(
    { weight: 60, arbitrary: speltCalls(bot) },
    { weight: 2, arbitrary: idleVerbs(bot) },
    { weight: 1, arbitrary: crowdedCalls(bot) },
    { weight: 1, arbitrary: deepCalls(bot) },
  )
}

function speltCalls(bot: fc.Arbitrary<SteadyBot>): fc.Arbitrary<WireCase> {
  return fc
    .record({
      bot,
      call: fc.nat({ max: 99 }),
      authority: authorities,
      encoded,
      hasSlash: fc.boolean(),
      isCapital: fc.boolean(),
      others: unknownParameters,
    })
    .chain(({ bot: steady, call, hasSlash, isCapital, others, ...how }) =>
      knownCall(steady, call).chain(({ name, method, parameters, exactly }) => {
        const spelt = isCapital ? method.toUpperCase() : method
        const path = `/bot${steady.token}/${spelt}${hasSlash ? '/' : ''}`
        const target = `${how.authority}${withEncoded(path, how.encoded)}`
        // The error of an unknown method repeats its name as the client spelt it.
        const body = exactly.body.replace(`: ${method} is not`, `: ${spelt} is not`)
        return encodedCall(target, [...others, ...parameters], headers).map((request) => ({
          name: `${name}, ${request.verb} with ${request.body?.contentType ?? 'a query'}`,
          bytes: bytesOf(request),
          expected: { kind: 'answer' as const, exactly: { ...exactly, body } },
        }))
      }),
    )
}

/** Calls that would change something, with verbs that do not run a method. */
function idleVerbs(bot: fc.Arbitrary<SteadyBot>): fc.Arbitrary<WireCase> {
  return fc
    .record({
      bot,
      verb: fc.constantFrom('HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND'),
      call: fc.constantFrom(
        'getUpdates?offset=-1',
        'deleteWebhook?drop_pending_updates=true',
        'getMe',
        'test/GETME/',
        'sendMessage',
      ),
      isKnown: fc.boolean(),
      headers,
    })
    .map(({ bot: { token }, verb, call, isKnown, headers: lines }) => ({
      name: `${verb} ${call}`,
      bytes: bytesOf({
        verb,
        target: `/bot${isKnown ? token : 'nobody'}/${call}`,
        headers: [...lines, 'Content-Length: 0'],
        body: undefined,
      }),
      expected: { kind: 'answer' as const, exactly: verbRefused },
      isHead: verb === 'HEAD',
    }))
}

const verbRefused: ExactAnswer = {
  status: 405,
  body: '{"ok":false,"error_code":405,"description":"Method Not Allowed: expected GET or POST, nothing was done"}',
}

/** A value of each parameter that is read, and of one that is not, nested slightly or far too deep. */
function deepCalls(bot: fc.Arbitrary<SteadyBot>): fc.Arbitrary<WireCase> {
  return fc
    .record({
      bot,
      target: fc.constantFrom(...deepTargets),
      nested: fc.constantFrom(...nested),
      verb: fc.constantFrom('GET', 'POST'),
      coding,
      framing,
      headers,
    })
    .map(({ bot: { token }, target: [method, name], nested: text, verb, ...how }) => ({
      name: `${method} with ${name} nested too deep`,
      bytes: bytesOf({
        verb,
        // The body wins.
        target: `/bot${token}/${method}?${name}=1`,
        headers: how.headers,
        body: {
          contentType: 'application/json',
          bytes: Buffer.from(`{"${name}":${text}}`),
          coding: how.coding,
          framing: how.framing,
        },
      }),
      expected: tooDeep,
    }))
}

/** One more of something than a call may contain. It is counted before the method is known. */
function crowdedCalls(bot: fc.Arbitrary<SteadyBot>): fc.Arbitrary<WireCase> {
  return fc
    .record({ bot, crowd: fc.constantFrom(...crowds), coding, framing, headers })
    .map(({ bot: { token }, crowd: [contentType, text, description], ...how }) => ({
      name: `too much: ${description}`,
      bytes: bytesOf({
        verb: 'POST',
        target: `/bot${token}/getMe`,
        headers: how.headers,
        body: {
          contentType,
          bytes: Buffer.from(text),
          coding: how.coding,
          framing: how.framing,
        },
      }),
      expected: {
        kind: 'answer' as const,
        exactly: {
          status: 400,
          body: `{"ok":false,"error_code":400,"description":"Bad Request: ${description}"}`,
        },
      },
    }))
}

const multipartType = 'multipart/form-data; boundary=B'
const crowds = [
  ['application/x-www-form-urlencoded', 'a=1&'.repeat(1_001), 'expected at most 1000 parameters'],
  [
    'application/json',
    `{"a":[${'1,'.repeat(4_000)}1]}`,
    'JSON has too many values: expected at most 4000',
  ],
  [multipartType, `${'--B\n\n\n'.repeat(1_001)}--B--`, 'expected at most 1000 multipart parts'],
  [
    multipartType,
    `--B\n${'a:b\n'.repeat(17)}\n\n--B--`,
    'expected at most 16 header lines with 16384 bytes in a multipart part',
  ],
  [
    multipartType,
    `--B\nContent-Disposition: form-data${';a=b'.repeat(17)}\n\n\n--B--`,
    'expected at most 16 parameters in a multipart header',
  ],
] as const

/** An encoded separator is not a separator. */
function withEncoded(path: string, which: RegExp): string {
  return Array.from(path, (char) =>
    char !== '/' && which.test(char) ? `%${char.charCodeAt(0).toString(16)}` : char,
  ).join('')
}

const deepTargets = [
  ['getUpdates', 'offset'],
  ['getUpdates', 'limit'],
  ['getUpdates', 'allowed_updates'],
  ['setWebhook', 'url'],
  ['getMe', 'unknown'],
] as const
const nested = [100, 10_000].flatMap((depth) => [
  `${'['.repeat(depth)}${']'.repeat(depth)}`,
  `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`,
  `${'[[],'.repeat(depth)}1${']'.repeat(depth)}`,
])
const tooDeep: WireCase['expected'] = {
  kind: 'answer',
  exactly: {
    status: 400,
    body: '{"ok":false,"error_code":400,"description":"Bad Request: JSON is nested too deeply: expected at most 100 levels"}',
  },
}

function knownCall(bot: SteadyBot, call: number): fc.Arbitrary<KnownCall> {
  if (call < 50) return updatesCall(bot)
  if (call < 70) return fc.constantFrom(...badWebhooks)
  if (call < 80) return fc.constant(ok('getMe', [], bot.me))
  if (call < 90) {
    const info = `{"url":"","has_custom_certificate":false,"pending_update_count":${bot.updates.length}}`
    return fc.constant(ok('getWebhookInfo', [], info))
  }
  if (call < 95) return fc.constantFrom(ok('close', [], 'true'), ok('logOut', [], 'true'))
  return fc.constantFrom(noWebhook, unknownMethod)
}

/** The limit may be any text that results in the same number. */
function updatesCall(bot: SteadyBot): fc.Arbitrary<KnownCall> {
  return fc
    .record({
      offset: harmlessOffset,
      limit: fc.integer({ min: -3, max: 150 }),
      before: blanks,
      behind: fc.constantFrom('', '.9', ' ', 'x', 'e5'),
      timeout: fc.constantFrom('0', '-1', 'junk', '0.9', '-99999999999999999999'),
    })
    .map(({ offset, limit, before, behind, timeout }) => {
      const count = Math.min(Math.max(limit, 1), 100)
      const call = ok(
        'getUpdates',
        [
          ['offset', `${offset}`],
          ['limit', `${before}${limit}${behind}`],
          ['timeout', timeout],
        ],
        `[${bot.updates.slice(0, count).join(',')}]`,
      )
      const bodyIfRepeated = `{"ok":true,"result":[${bot.updates[0]}]}`
      return { ...call, exactly: { ...call.exactly, bodyIfRepeated } }
    })
}

function ok(method: string, parameters: Parameters, result: string): KnownCall {
  return {
    name: method,
    method,
    parameters,
    exactly: { status: 200, body: `{"ok":true,"result":${result}}` },
  }
}

function refused(method: string, parameters: Parameters, description: string): KnownCall {
  const status = description.startsWith('Not Found') ? 404 : 400
  const body = JSON.stringify({ ok: false, error_code: status, description })
  return { name: `${method} refused`, method, parameters, exactly: { status, body } }
}

function badWebhook(parameters: Parameters, description: string): KnownCall {
  return refused('setWebhook', parameters, `Bad Request: ${description}`)
}

const url = ['url', 'https://10.0.0.1/'] as const
const badWebhooks = [
  badWebhook([['url', 'ht tp:']], 'invalid webhook URL specified'),
  badWebhook([['url', 'https://']], 'invalid webhook URL specified'),
  badWebhook([['url', `https://${'a'.repeat(2_100)}/`]], 'invalid webhook URL specified'),
  badWebhook(
    [['url', 'http://10.0.0.1/']],
    'bad webhook: An HTTPS URL must be provided for webhook',
  ),
  badWebhook(
    [['url', 'https://10.0.0.1:8444/']],
    'bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443',
  ),
  badWebhook([url, ['secret_token', 'x'.repeat(257)]], 'secret token is too long'),
  badWebhook([url, ['secret_token', 'é']], 'secret token contains unallowed characters'),
  badWebhook([url, ['allowed_updates', '{"a":1}']], "can't parse allowed updates"),
  badWebhook([url, ['allowed_updates', '["message"']], "can't parse allowed updates"),
  badWebhook([url, ['ip_address', 'localhost']], 'bad webhook: Invalid IP address specified'),
]
const noWebhook: KnownCall = {
  name: 'deleteWebhook',
  method: 'deleteWebhook',
  parameters: [['drop_pending_updates', 'no']],
  exactly: {
    status: 200,
    body: '{"ok":true,"result":true,"description":"Webhook is already deleted"}',
  },
}
const unknownMethod = refused(
  'sendSomething',
  [['text', 'x']],
  'Not Found: method not found: sendSomething is not served here: the server has no --upstream',
)
