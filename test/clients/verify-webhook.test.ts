/** The functions of the clients that check signatures, with what a stranger may send, in every form that headers have. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { generateKeyPairSync, sign } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { missing } from '../../clients/conformance/conformance-clients.ts'
import { verifyWebhook, type WebhookHeaders } from '../../clients/typescript/verify-webhook.ts'
import { assertVerdicts, signatureCases, signingKey } from '../support/webhook/signature-cases.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const whpk = `whpk_${publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64')}`
const otherKey = `whsec_${Buffer.from('another').toString('base64')}`

/** Returns the headers of a delivery that the private key has signed. */
function signedHeaders(
  body: Buffer,
  nowS = Math.floor(Date.now() / 1_000),
): Record<string, string> {
  const signed = Buffer.concat([Buffer.from(`m1.${nowS}.`), body])
  const signature = `v1a,${sign(null, signed, privateKey).toString('base64')}`
  return { 'webhook-id': 'm1', 'webhook-timestamp': `${nowS}`, 'webhook-signature': signature }
}

function fetchHeaders(headers: Readonly<Record<string, string>>): Headers | undefined {
  try {
    return new Headers(headers)
  } catch {
    return undefined
  }
}

test('verifyWebhook takes what was signed now, in every form of headers, and fails at nothing', () => {
  for (const { what, headers, body, isGood } of signatureCases()) {
    const pairs = Object.entries(headers)
    const forms: readonly (WebhookHeaders | undefined)[] = [
      headers,
      Object.fromEntries(pairs.map(([name, value]) => [name.toUpperCase(), [value]])),
      new Map(pairs),
      pairs.flat(),
      fetchHeaders(headers),
    ]
    for (const form of forms) {
      if (form === undefined) continue
      const bytes = Buffer.from(body, 'base64')
      assert.equal(verifyWebhook(form, bytes, signingKey), isGood, what)
      assert.equal(
        verifyWebhook(form, new Uint8Array(bytes), [otherKey, whpk, signingKey]),
        isGood,
        what,
      )
      assert.equal(verifyWebhook(form, bytes, [otherKey]), false, what)
    }
  }
})

test('verifyWebhook checks ed25519, the time that it is given, and headers that come twice', () => {
  const body = Buffer.from('{}')
  const headers = signedHeaders(body, 1_000)
  assert(verifyWebhook(headers, '{}', whpk, { nowMs: 1_300_000 }))
  assert(!verifyWebhook(headers, '{}', whpk, { nowMs: 1_301_000 }))
  assert(verifyWebhook(headers, '{}', whpk, { nowMs: 1_301_000, toleranceS: 301 }))
  assert(!verifyWebhook(headers, '{}', whpk, { nowMs: NaN }))
  const now = { nowMs: 1_000_000 }
  const twice = { ...headers, 'Webhook-Id': 'm1' }
  assert(!verifyWebhook(twice, '{}', whpk, now))
  assert(verifyWebhook({ ...headers, 'Webhook-Signature': 'v1a,AA==' }, '{}', whpk, now))
  assert(!verifyWebhook({ ...headers, 'webhook-signature': 'v1a,AA==' }, '{}', whpk, now))
  const many = `${'v1,x '.repeat(16)}${headers['webhook-signature']}`
  assert(!verifyWebhook({ ...headers, 'webhook-signature': many }, '{}', whpk, now))
})

test('verifyWebhook takes no body that a framework has parsed or left out, because a stranger chooses its Content-Type', () => {
  const body = Buffer.from('{}')
  const headers = signedHeaders(body)
  for (const other of [undefined, null, {}, [], 7, { type: 'Buffer', data: [...body] }]) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- programs in JavaScript pass what they have
    assert.equal(verifyWebhook(headers, other as Buffer, whpk), false)
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as fetch has it
  assert(verifyWebhook(headers, new Uint8Array(body).buffer as unknown as Buffer, whpk))
})

test('verifyWebhook refuses secrets that would let everybody in, and does not show them', () => {
  for (const secret of ['', 'whsec_', 'whsec_====', 'whpk_AAAA', 'secret', signingKey.slice(6)]) {
    assert.throws(
      () => verifyWebhook({}, '', secret),
      (error) => {
        assert(error instanceof TypeError)
        return secret.length < 9 || !error.message.includes(secret)
      },
    )
  }
  assert.throws(() => verifyWebhook({}, '', []), TypeError)
})

test('verify_webhook of the client for Python does the same', {
  skip: missing('python3', '--version') ?? false,
}, (t) => {
  const directory = temporaryDirectory(t)
  const file = join(directory, 'verify.py')
  const body = Buffer.from('{"a":"é"}')
  const pairs = JSON.stringify(Object.entries(signedHeaders(body)))
  writeFileSync(
    file,
    `
import base64, json, sys
sys.path.insert(0, ${JSON.stringify(`${root}clients/python`)})
from postbote_client import verify_webhook
given = json.load(sys.stdin)
verdicts = []
for each in given["cases"]:
    body, headers = base64.b64decode(each["body"]), each["headers"]
    encoded = [(name.upper().encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    forms = [headers, {name.title(): [value] for name, value in headers.items()}, list(headers.items()), encoded]
    found = {verify_webhook(form, body, secrets) for form in forms for secrets in (given["signingKey"], [${JSON.stringify(otherKey)}, given["signingKey"]])}
    assert not verify_webhook(headers, body, ${JSON.stringify(otherKey)})
    verdicts.append(found.pop() if len(found) == 1 else "both")
pairs = json.loads(${JSON.stringify(pairs)})
body = base64.b64decode("${body.toString('base64')}")
assert verify_webhook(pairs, body, ${JSON.stringify(whpk)})
assert not verify_webhook(pairs, body + b" ", ${JSON.stringify(whpk)})
assert not verify_webhook(pairs + [("webhook-ID", "m1")], body, ${JSON.stringify(whpk)})
assert not verify_webhook(pairs, body, ${JSON.stringify(whpk)}, now_s=1)
for other in (None, {}, [], 10**15, json.loads(body)):
    assert not verify_webhook(pairs, other, ${JSON.stringify(whpk)})
for secret in ("", [], "whsec_", "whsec_é", "whpk_AAAA", "secret"):
    try:
        verify_webhook({}, b"", secret)
        raise SystemExit("took " + repr(secret))
    except ValueError:
        pass
print(json.dumps(verdicts))
`,
  )
  assertVerdicts('python3', ['-B', '-W', 'error', file], directory)
})

test('VerifyWebhook of the client for Go does the same', {
  skip: missing('go', 'version') ?? false,
}, (t) => {
  const directory = temporaryDirectory(t)
  const body = Buffer.from('{}')
  const headers = JSON.stringify(signedHeaders(body))
  writeFileSync(
    join(directory, 'go.mod'),
    `module verify\n\ngo 1.19\n\nrequire postbote v0.0.0\n\nreplace postbote => ${root}clients/go\n`,
  )
  writeFileSync(
    join(directory, 'main.go'),
    `package main

import (
	"encoding/json"
	"net/http"
	"os"
	"postbote"
	"time"
)

type example struct {
	Headers map[string]string
	Body    []byte
}

func headerOf(from map[string]string, raw bool) http.Header {
	header := http.Header{}
	for name, value := range from {
		if raw {
			header[name] = []string{value}
		} else {
			header.Set(name, value)
		}
	}
	return header
}

func verdict(header http.Header, body []byte, secrets []string, options *postbote.VerifyWebhookOptions) bool {
	is, err := postbote.VerifyWebhook(header, body, secrets, options)
	if err != nil {
		panic(err)
	}
	return is
}

func must(is bool) {
	if !is {
		panic("expected another verdict")
	}
}

func main() {
	var given struct {
		SigningKey string
		Cases      []example
	}
	must(json.NewDecoder(os.Stdin).Decode(&given) == nil)
	verdicts := []bool{}
	for _, each := range given.Cases {
		is := verdict(headerOf(each.Headers, false), each.Body, []string{given.SigningKey}, nil)
		must(is == verdict(headerOf(each.Headers, true), each.Body, []string{"${otherKey}", given.SigningKey}, nil))
		must(!verdict(headerOf(each.Headers, true), each.Body, []string{"${otherKey}"}, nil))
		verdicts = append(verdicts, is)
	}
	var headers map[string]string
	must(json.Unmarshal([]byte(\`${headers}\`), &headers) == nil)
	keys := []string{"${whpk}"}
	must(verdict(headerOf(headers, false), []byte("{}"), keys, nil))
	must(!verdict(headerOf(headers, false), []byte("{ }"), keys, nil))
	must(!verdict(headerOf(headers, false), []byte("{}"), keys, &postbote.VerifyWebhookOptions{Now: time.Unix(1, 0)}))
	for _, secret := range []string{"", "whsec_", "whsec_é", "whpk_AAAA", "secret"} {
		_, err := postbote.VerifyWebhook(http.Header{}, nil, []string{secret}, nil)
		must(err != nil)
	}
	_, err := postbote.VerifyWebhook(http.Header{}, nil, nil, nil)
	must(err != nil)
	must(json.NewEncoder(os.Stdout).Encode(verdicts) == nil)
}
`,
  )
  assert.equal(spawnSync('gofmt', ['-l', `${root}clients/go`], { encoding: 'utf8' }).stdout, '')
  assertVerdicts('go', ['run', '.'], directory)
})
