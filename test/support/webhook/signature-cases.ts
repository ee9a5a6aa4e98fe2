/**
 * Deliveries to a webhook, as the server signs them and as strangers may send them. Programs in several languages get all of
 * them at once and say which are good.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'

export interface SignatureCase {
  readonly what: string
  readonly headers: Readonly<Record<string, string>>
  /** In base64. */
  readonly body: string
  readonly isGood: boolean
}

const key = Buffer.from('0123456789abcdef0123456789abcdef')
export const signingKey = `whsec_${key.toString('base64')}`

export function signatureCases(): readonly SignatureCase[] {
  const body = Buffer.from('{"update_id":7,"message":{"text":"é"}}')
  const nowS = Math.floor(Date.now() / 1_000)
  const signature = (sent: number | string, secret = key, bytes = body): string =>
    `v1,${createHmac('sha256', secret).update(`m1.${sent}.`).update(bytes).digest('base64')}`
  const headers = (
    sent: number | string,
    signatures = signature(sent),
  ): SignatureCase['headers'] => ({
    'webhook-id': 'm1',
    'webhook-timestamp': `${sent}`,
    'webhook-signature': signatures,
  })
  const good = headers(nowS)
  const { 'webhook-signature': right = '' } = good
  const without = (name: string): SignatureCase['headers'] =>
    Object.fromEntries(Object.entries(good).filter(([each]) => each !== name))
  const other = Buffer.from('another key')
  const rows: readonly (readonly [string, SignatureCase['headers'], boolean, Buffer?])[] = [
    ['right', good, true],
    [
      'right, beside that of another key',
      headers(nowS, `${signature(nowS, other)} ${right}`),
      true,
    ],
    ['right, beside another scheme', headers(nowS, `v1a,${'A'.repeat(86)}== ${right}`), true],
    [
      'bytes that are no text',
      headers(nowS, signature(nowS, key, Buffer.from([0, 255, 13]))),
      true,
      Buffer.from([0, 255, 13]),
    ],
    ['200 s old', headers(nowS - 200), true],
    ['nothing', {}, false],
    ['no id', without('webhook-id'), false],
    ['no timestamp', without('webhook-timestamp'), false],
    ['no signature', without('webhook-signature'), false],
    ['empty', headers(nowS, ''), false],
    ['short', headers(nowS, right.slice(0, -1)), false],
    ['cut to the scheme', headers(nowS, 'v1,'), false],
    ['another key', headers(nowS, signature(nowS, other)), false],
    ['another scheme', headers(nowS, right.replace('v1,', 'v2,')), false],
    ['another body', good, false, Buffer.from('{}')],
    ['a byte above 127 at the right length', headers(nowS, `${right.slice(0, -1)}é`), false],
    ['bytes above 127', headers(nowS, `v1,${'é'.repeat(44)}`), false],
    ['half as many bytes above 127', headers(nowS, `v1,${'é'.repeat(22)}`), false],
    ['an id above 127', { ...good, 'webhook-id': 'mé' }, false],
    ['old', headers(nowS - 3_600), false],
    ['of the future', headers(nowS + 3_600), false],
    ...[
      '',
      'now',
      '-1',
      '1e9',
      '٣',
      '9'.repeat(5_000),
      '9223372036854775808',
      '-9223372036854775808',
    ].map((sent) => [`the timestamp ${sent.slice(0, 20)}`, headers(sent), false] as const),
  ]
  return rows.map(([what, sent, isGood, bytes = body]) => ({
    what,
    headers: sent,
    body: bytes.toString('base64'),
    isGood,
  }))
}

/** Runs a program that reads cases and prints a list with what the function returned for each. */
export function assertVerdicts(program: string, args: readonly string[], cwd: string): void {
  const cases = signatureCases()
  const input = JSON.stringify({ signingKey, cases })
  const env = { ...process.env, GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local' }
  const { status, stdout, stderr } = spawnSync(program, args, { input, cwd, env, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  const verdicts: unknown = JSON.parse(stdout)
  assert(Array.isArray(verdicts))
  assert.deepEqual(
    cases.map(({ what }, nth) => [what, verdicts[nth]]),
    cases.map(({ what, isGood }) => [what, isGood]),
  )
}
