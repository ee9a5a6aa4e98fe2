import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { PostboteError } from '../../../src/kit/errors.ts'
import {
  errorReplyText,
  resultText,
  sendError,
  sendGzipped,
  sendResult,
  sendList,
} from '../../../src/http/reply.ts'
import { type RawAnswer, RawServer } from '../../support/producers/raw-http.ts'

const slices = [Buffer.from(',{"update_id":1}'), Buffer.from(',{"update_id":2}')]

const raw = new RawServer((request, response) => {
  const { url = '' } = request
  if (url === '/result') sendResult(response, 'true', 'Webhook was "set"')
  else if (url === '/slices') sendList(response, slices)
  else if (url === '/gzip') sendGzipped(response, gzipSync('{"ok":true,"result":[]}'))
  else if (url === '/429')
    sendError(response, new PostboteError('TOO_MANY_REQUESTS', { retryAfterS: 2.5 }))
  else if (url === '/405')
    sendError(response, new PostboteError('VERB_NOT_ALLOWED', { detail: 'GET or POST' }))
  else if (url === '/close')
    sendError(response, new PostboteError('UNKNOWN_TOKEN'), { close: true })
  else if (url === '/twice') {
    sendResult(response, '[]')
    sendError(response, new PostboteError('INTERNAL'))
    sendList(response, slices)
    sendGzipped(response, Buffer.from('x'))
  } else sendError(response, new PostboteError('NOT_FOUND'))
})

before(() => raw.listen())
after(() => raw.close())

function get(path: string): Promise<RawAnswer> {
  return raw.exchange(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`)
}

function assertEnvelope(answer: RawAnswer, status: number): void {
  assert.equal(answer.status, status)
  assert.equal(answer.headers['content-type'], 'application/json')
  const envelope: Record<string, unknown> = JSON.parse(answer.body)
  assert.equal(envelope['ok'], status === 200)
  if (status === 200) return
  assert.equal(envelope['error_code'], status)
  assert.ok(typeof envelope['description'] === 'string' && envelope['description'] !== '')
  assert.ok(!('parameters' in envelope) || status === 429)
}

test('a result has a description only if there is one', async () => {
  assert.equal(resultText('[]'), '{"ok":true,"result":[]}')
  const answer = await get('/result')
  assertEnvelope(answer, 200)
  assert.equal(answer.body, '{"ok":true,"result":true,"description":"Webhook was \\"set\\""}')
})

test('the status is the error_code, and empty parameters are left out', async () => {
  const answer = await get('/nowhere')
  assertEnvelope(answer, 404)
  assert.equal(answer.body, '{"ok":false,"error_code":404,"description":"Not Found"}')
  assert.equal(answer.headers['retry-after'], undefined)
  assert.equal(answer.headers['connection'], 'keep-alive')
})

test('a 429 says in the header and in the envelope when to try again, in whole seconds', async () => {
  const answer = await get('/429')
  assertEnvelope(answer, 429)
  assert.equal(answer.headers['retry-after'], '3')
  assert.match(answer.body, /"parameters":\{"retry_after":3\}\}$/)
  const bare = errorReplyText(new PostboteError('TOO_MANY_KEYS'))
  assert.match(bare, /"parameters":\{"retry_after":1\}\}$/)
})

test('the refusal of a verb lists the allowed ones', async () => {
  const answer = await get('/405')
  assertEnvelope(answer, 405)
  assert.equal(answer.headers['allow'], 'GET, POST')
  assert.equal((await get('/nowhere')).headers['allow'], undefined)
})

test('a response may close its connection', async () => {
  const answer = await get('/close')
  assertEnvelope(answer, 401)
  assert.equal(answer.headers['connection'], 'close')
})

test('slices form one body of a known length', async () => {
  const answer = await get('/slices')
  assertEnvelope(answer, 200)
  assert.equal(answer.body, '{"ok":true,"result":[{"update_id":1},{"update_id":2}]}')
  assert.equal(answer.headers['transfer-encoding'], undefined)
})

test('a compressed list has the matching header', async () => {
  const connection = raw.connect()
  const whole: Buffer[] = []
  connection.socket.on('data', (chunk: Buffer) => whole.push(chunk))
  connection.write('GET /gzip HTTP/1.1\r\nHost: h\r\n\r\n')
  const { headers } = await connection.answer()
  assert.equal(headers['content-encoding'], 'gzip')
  assert.equal(headers['content-type'], 'application/json')
  const bytes = Buffer.concat(whole)
  const body = bytes.subarray(bytes.indexOf('\r\n\r\n') + 4)
  assert.equal(gunzipSync(body).toString(), '{"ok":true,"result":[]}')
  connection.socket.destroy()
})

test('a second response to the same request is not sent', async () => {
  const connection = raw.connect()
  connection.write('GET /twice HTTP/1.1\r\nHost: h\r\n\r\nGET /result HTTP/1.1\r\nHost: h\r\n\r\n')
  assert.equal((await connection.answer()).body, '{"ok":true,"result":[]}')
  assertEnvelope(await connection.answer(), 200)
  connection.socket.destroy()
})
