/**
 * The functions of docs/start/bot.md that check signatures, as people paste them: each gets what a stranger may send, in one
 * process for each language. None may fail, and only what the server has signed now is good.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { transformSync } from 'esbuild'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'

const page = readFileSync(new URL('../../../docs/start/bot.md', import.meta.url), 'utf8')
const section = page.slice(page.indexOf('### Check a signature'))

/** Returns the first block of the section in a language. */
function sampleIn(language: string): string {
  const [, sample] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(section) ?? []
  return sample ?? assert.fail(`docs/start/bot.md has no sample in ${language}`)
}

interface Case {
  readonly what: string
  readonly headers: Readonly<Record<string, string>>
  /** In base64. */
  readonly body: string
  readonly isGood: boolean
}

const key = Buffer.from('0123456789abcdef0123456789abcdef')
const signingKey = `whsec_${key.toString('base64')}`

function casesNow(): readonly Case[] {
  const body = Buffer.from('{"update_id":7,"message":{"text":"é"}}')
  const nowS = Math.floor(Date.now() / 1_000)
  const signature = (sent: number | string, secret = key, bytes = body): string =>
    `v1,${createHmac('sha256', secret).update(`m1.${sent}.`).update(bytes).digest('base64')}`
  const headers = (sent: number | string, signatures = signature(sent)): Case['headers'] => ({
    'webhook-id': 'm1',
    'webhook-timestamp': `${sent}`,
    'webhook-signature': signatures,
  })
  const good = headers(nowS)
  const { 'webhook-signature': right = '' } = good
  const without = (name: string): Case['headers'] =>
    Object.fromEntries(Object.entries(good).filter(([each]) => each !== name))
  const other = Buffer.from('another key')
  const rows: readonly (readonly [string, Case['headers'], boolean, Buffer?])[] = [
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
function assertVerdicts(program: string, args: readonly string[], cwd: string): void {
  const cases = casesNow()
  const input = JSON.stringify({ signingKey, cases })
  const env = { ...process.env, GOFLAGS: '-mod=mod', GO111MODULE: 'off', GOTOOLCHAIN: 'local' }
  const { status, stdout, stderr } = spawnSync(program, args, { input, cwd, env, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  const verdicts: unknown = JSON.parse(stdout)
  assert(Array.isArray(verdicts))
  assert.deepEqual(
    cases.map(({ what }, nth) => [what, verdicts[nth]]),
    cases.map(({ what, isGood }) => [what, isGood]),
  )
}

function obstacle(program: string, ...args: readonly string[]): string | false {
  return spawnSync(program, args).status === 0 ? false : `${program} is not installed`
}

test('the sample in TypeScript takes what was signed now, and fails at nothing', (t) => {
  const directory = temporaryDirectory(t)
  const file = join(directory, 'sample.mjs')
  const main = `
    import { readFileSync } from 'node:fs'
    const { signingKey, cases } = JSON.parse(readFileSync(0, 'utf8'))
    console.log(JSON.stringify(cases.map(({ headers, body }) => isSigned(headers, Buffer.from(body, 'base64'), signingKey))))`
  writeFileSync(file, transformSync(sampleIn('ts'), { loader: 'ts' }).code + main)
  assertVerdicts(process.execPath, [file], directory)
})

test('the sample in Python takes what was signed now, and fails at nothing', {
  skip: obstacle('python3', '--version'),
}, (t) => {
  const directory = temporaryDirectory(t)
  const file = join(directory, 'sample.py')
  const main = `
import json, sys
given = json.load(sys.stdin)
verdicts = [is_signed(each["headers"], base64.b64decode(each["body"]), given["signingKey"]) for each in given["cases"]]
print(json.dumps(verdicts))
`
  writeFileSync(file, sampleIn('py') + main)
  assertVerdicts('python3', [file], directory)
})

test('the sample in Go takes what was signed now, and fails at nothing', {
  skip: obstacle('go', 'version'),
}, (t) => {
  const directory = temporaryDirectory(t)
  const file = join(directory, 'sample.go')
  const sample = sampleIn('go')
  const [comment = ''] = sample.split('\n')
  const packages = [...comment.matchAll(/"[\w/]+"/g)].map(([name]) => name)
  const imports = ['"encoding/json"', '"os"', ...packages].join('\n')
  const main = `
type example struct { Headers map[string]string; Body []byte }
func main() {
	var given struct { SigningKey string; Cases []example }
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil { panic(err) }
	verdicts := []bool{}
	for _, each := range given.Cases {
		header := http.Header{}
		for name, value := range each.Headers { header.Set(name, value) }
		verdicts = append(verdicts, isSigned(header, each.Body, given.SigningKey))
	}
	json.NewEncoder(os.Stdout).Encode(verdicts)
}
`
  writeFileSync(file, `package main\nimport (\n${imports}\n)\n${sample}${main}`)
  // Nothing of it is newer than what the client promises.
  assert.doesNotMatch(sample, /\bslices\.|\bmaps\.|\bmin\(|\bmax\(|cmp\./)
  assertVerdicts('go', ['run', file], directory)
})
