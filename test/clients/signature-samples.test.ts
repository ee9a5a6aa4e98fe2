/**
 * The functions of docs/start/bot.md that check signatures, as people paste them: each gets what a stranger may send, in one
 * process for each language. None may fail, and only what the server has signed now is good.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { transformSync } from 'esbuild'
import { assertVerdicts } from '../support/webhook/signature-cases.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'

const page = readFileSync(new URL('../../../docs/start/bot.md', import.meta.url), 'utf8')
const section = page.slice(page.indexOf('### Check a signature'))

/** Returns the first block of the section in a language. */
function sampleIn(language: string): string {
  const [, sample] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(section) ?? []
  return sample ?? assert.fail(`docs/start/bot.md has no sample in ${language}`)
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
