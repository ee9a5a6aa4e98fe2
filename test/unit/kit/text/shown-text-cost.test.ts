/**
 * The matrix of the door for texts: each function that sees what strangers say, with 16 KiB of what made expressions backtrack.
 * Twice the length may cost twice as much, not four times. CPU time is compared, and of several runs the shortest, because
 * other programs and the collector of garbage only make a run longer.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { textTable } from '../../../../src/cli/output/text-table.ts'
import { readableLine } from '../../../../src/cli/output/readable-line.ts'
import { kib } from '../../../../src/kit/limits.ts'
import { readOriginAnswer } from '../../../../src/features/relay/read-origin-answer.ts'
import { SecretFinder } from '../../../../src/kit/text/secret-finder.ts'
import { shownText } from '../../../../src/kit/text/shown-text.ts'
import { visible, visibleJson } from '../../../../src/kit/text/visible.ts'
import { classifyResponse } from '../../../../src/delivery/attempts/classify-response.ts'
import {
  failureOf,
  lookupFailureOf,
  tlsFailureOf,
} from '../../../../src/delivery/attempts/failure.ts'
import { secretsOf } from '../../../../src/delivery/endpoint/request-secrets.ts'
import { shownHeaders } from '../../../../src/delivery/attempts/response-headers.ts'
import { ResponseText } from '../../../../src/delivery/attempts/response-text.ts'
import { parseRetryAfter } from '../../../../src/delivery/pace/retry.ts'

const length = 16 * kib
/** Above the 2 of a linear cost, with room for small numbers, and below the 4 of a quadratic one. */
const ratioMax = 3.5
const runs = 7
/** A run takes so long at least, so that the clock of the CPU is exact enough. */
const runUsMin = 2_000

const base64url = Buffer.from('A secret in base64url? >~').toString('base64url')
const inputs: Readonly<Record<string, string>> = {
  digits: '1',
  'equals signs': '=',
  colons: ':',
  'escaped colons': '%3a',
  'digits and colons': '1:',
  'percent signs': '%25',
  blanks: ' ',
  tabs: '\t',
  base64url,
  'lines of base64': `${'YWJh'.repeat(15)} `,
  'ends of lines': `${'YWJh'.repeat(15)}${String.raw`\r\n`}`,
  slashes: '/',
  backslashes: '\\',
  'ampersands and hashes': '&#1',
  commas: ',',
  letters: 'a',
  'U+200B': '\u200b',
  'U+E0041': '\u{e0041}',
  C1: '\u0085',
  'right-to-left': '\u202e',
}

const request = {
  path: `/${Array.from({ length: 40 }, (_, nth) => `part-${nth}-of-the-url`).join('/')}`,
  headers: ['Authorization', 'Basic dXNlcjpwYXNzd29yZA==', 'X-Secret', 'aaaaaaaa'],
}
const secrets = new SecretFinder(secretsOf(request))
const long = { ...request, path: `/${'a'.repeat(2_000)}b` }
const longSecrets = new SecretFinder(secretsOf(long))
const bytesMax = 4 * length

const functions: Readonly<Record<string, (text: string) => unknown>> = {
  visible,
  visibleJson,
  'shownText, whole': (text) => shownText(text, { bytesMax, secrets }),
  'shownText with a long secret': (text) => shownText(text, { bytesMax, secrets: longSecrets }),
  'shownText, cut': (text) => shownText(text, { bytesMax: 256, secrets }),
  'secrets of a request': (text) =>
    new SecretFinder(secretsOf({ path: text, headers: ['X', text, 'Authorization', text] })),
  ResponseText: (text) => {
    const response = new ResponseText({ bytesMax: 4 * kib, secrets: () => [text.slice(0, 64)] })
    response.begin(500, { 'x-text': text, location: text, [text]: 'x' })
    response.add(Buffer.from(text))
    return [response.read(request), response.readHeaders(request)]
  },
  shownHeaders: (text) => shownHeaders({ 'x-a': text, 'x-b': [text, text] }, secrets),
  'location of a redirect': (text) => shownHeaders({ location: `https://${text}` }, secrets),
  'Webhook-Delivery': (text) => classifyResponse({ status: 500, deliveryOrder: text }),
  'Retry-After': (text) => parseRetryAfter(text, 0),
  'errors of connections': (text) => {
    const error = Object.assign(new Error(text), { code: text })
    return [failureOf(error), tlsFailureOf(error), lookupFailureOf(error)]
  },
  'failure of an origin': (text) => {
    const body = Buffer.from(JSON.stringify({ ok: false, description: text }))
    return readOriginAnswer({ status: 409, body, retryAfter: text, nowMs: 0 })
  },
  'answer of an origin': (text) =>
    readOriginAnswer({ status: 200, body: Buffer.from(text), retryAfter: undefined, nowMs: 0 }),
  'a table': (text) => textTable({ head: ['a', 'b'], rows: [[text, 'x']] }, 80),
  'a line of the log': (text) =>
    readableLine(JSON.stringify({ level: 30, time: '', pid: 1, msg: text, error: text }), false),
}

function cpuUs(work: () => unknown, repetitions: number): number {
  const before = process.cpuUsage()
  for (let nth = 0; nth < repetitions; nth++) work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/** Returns how many times as much a text of twice the length costs. */
function ratioOf(use: (text: string) => unknown, input: string): number {
  const once = input.repeat(Math.ceil(length / input.length))
  const twice = once + once
  let repetitions = 1
  while (cpuUs(() => use(once), repetitions) < runUsMin) repetitions *= 2
  let [shortest, longest] = [Infinity, Infinity]
  for (let run = 0; run < runs; run++) {
    shortest = Math.min(
      shortest,
      cpuUs(() => use(once), repetitions),
    )
    longest = Math.min(
      longest,
      cpuUs(() => use(twice), repetitions),
    )
    if (run > 1 && longest / shortest < 2.5) break
  }
  return longest / shortest
}

for (const [name, use] of Object.entries(functions)) {
  test(`the cost of ${name} grows no faster than the text, whatever a stranger says`, () => {
    const ratios = Object.entries(inputs).map(([input, text]) => {
      const ratio = ratioOf(use, text)
      // A machine that does something else in one of the runs says nothing; a cost that grows faster is there each time.
      return [
        input,
        ratio > ratioMax ? Math.min(ratio, ratioOf(use, text), ratioOf(use, text)) : ratio,
      ] as const
    })
    assert.deepEqual(
      ratios.filter(([, ratio]) => ratio > ratioMax),
      [],
    )
  })
}

test('nothing that is shown of these texts is invisible', () => {
  for (const text of Object.values(inputs)) {
    const said = text.repeat(Math.ceil(length / text.length))
    for (const shown of [
      shownText(said, { bytesMax, secrets }),
      visible(said),
      visibleJson(JSON.stringify(said)),
      shownHeaders({ 'x-a': said }, secrets) ?? '',
      ...textTable({ head: ['a'], rows: [[said]] }).lines,
    ]) {
      assert.doesNotMatch(shown, /[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]/u)
    }
  }
})
