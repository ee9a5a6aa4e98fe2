/** The fake origin as a process: what goes wrong on demand, where a call stops, and what is recorded. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { test } from 'node:test'
import { issueCertificate } from '../network/certificates.ts'
import { type Answer, send } from '../server/server.ts'
import { shared } from '../server/shared-server.ts'
import { chatMessage, type OriginFault } from './origin-calls.ts'
import { originFile } from './origin-methods.ts'
import { Origin } from './origin.ts'

const started = shared((owner) => Origin.start(owner))
let lastBotId = 4_000

async function newBot() {
  const origin = await started()
  const botId = ++lastBotId
  const token = `${botId}:${'s'.repeat(35)}`
  await origin.control.register([{ botId, token, firstId: 1_000 }])
  const call = (method: string, signal?: AbortSignal): Promise<Answer> => {
    const url = `${origin.url}/bot${token}/${method}`
    return send({ method: 'GET', url, ...(signal === undefined ? {} : { signal }) })
  }
  return { origin, control: origin.control, botId, token, call }
}

test('it serves what frameworks ask for', async () => {
  const { origin, control, botId, token, call } = await newBot()
  assert.equal((await call('getMe')).body.result.id, botId)
  assert.equal((await call('sendMessage?chat_id=7&text=hello')).body.result.text, 'hello')
  assert.deepEqual(await control.sent(botId), [{ chat_id: 7, text: 'hello' }])
  const { file_path: path } = (await call('getFile?file_id=x')).body.result
  const file = await send({ method: 'GET', url: `${origin.url}/file/bot${token}/${path}` })
  assert.equal(file.text, originFile)
  assert.equal((await call('setWebhook?url=https://example.com')).body.result, true)
  assert.equal((await call('getWebhookInfo')).body.result.url, 'https://example.com')
  assert.equal((await call('getUpdates')).status, 409)
  assert.equal((await call('deleteWebhook')).body.result, true)
  assert.equal((await call('dance')).status, 404)
  await control.renew(botId, 'another')
  assert.deepEqual((await call('getMe')).body, {
    ok: false,
    error_code: 401,
    description: 'Unauthorized',
  })
})

test('each fault lasts as long as it was told to', async () => {
  const { control, botId, call } = await newBot()
  await control.push(botId, [chatMessage(1, 'one')])
  const faults: readonly OriginFault[] = [
    {
      kind: 'refuse',
      status: 429,
      description: 'Too Many Requests: retry after 7',
      retryAfterS: 7,
    },
    { kind: 'respond', status: 302, body: '', headers: { location: 'http://127.0.0.1:1/' } },
    { kind: 'respond', status: 200, body: '{"ok":true,"result":[{' },
  ]
  const answers: Answer[] = []
  for (const fault of faults) {
    await control.fault(botId, fault, 1)
    answers.push(await call('getUpdates?offset=1002'))
    assert.equal(await control.pending(botId), 1)
  }
  assert.deepEqual(
    answers.map(({ status }) => status),
    [429, 302, 200],
  )
  assert.equal(answers[0]?.body.parameters.retry_after, 7)
  assert.equal(answers[0]?.headers['retry-after'], '7')
  await control.fault(botId, { kind: 'cut' }, 1)
  await assert.rejects(call('getUpdates'))
  await control.fault(botId, { kind: 'hang' }, 1)
  await assert.rejects(call('getUpdates', AbortSignal.timeout(50)))
  await control.fault(botId, undefined)
  assert.equal((await call('getUpdates')).body.result.length, 1)
})

test('a call stops at a gate, and is recorded when it has ended', async () => {
  const { control, botId, call } = await newBot()
  const before = (await control.calls()).length
  await control.push(botId, [chatMessage(1, 'one'), chatMessage(1, 'two')])
  const atAnswer = control.reach(botId, 'answer')
  const given = call('getUpdates?limit=1')
  await atAnswer
  await control.release(botId, 'go')
  assert.equal((await given).body.result.length, 1)

  const atConfirm = control.reach(botId, 'confirm')
  const dropped = call('getUpdates?offset=1001')
  await atConfirm
  assert.equal(await control.pending(botId), 2)
  await Promise.all([assert.rejects(dropped), control.release(botId, 'drop')])
  assert.equal(await control.pending(botId), 2)

  const confirmed = control.reach(botId, 'confirmed')
  const lost = call('getUpdates?offset=1001')
  await confirmed
  assert.equal(await control.pending(botId), 1)
  await Promise.all([assert.rejects(lost), control.release(botId, 'drop')])

  const calls = (await control.calls(before)).map(
    ({ status, offset, confirmed: ids, given: to }) => [status, offset, ids, to],
  )
  assert.deepEqual(calls, [
    [200, 0, [], [1_000]],
    [0, 1_001, undefined, undefined],
    [0, 1_001, undefined, undefined],
  ])
})

test('it drives messages that count in each chat', async () => {
  const { control, botId, call } = await newBot()
  await control.drive({ botId, chats: [1, 2], count: 2 })
  await control.drive({ botId, chats: [2], count: 1, perSecond: 1_000 })
  const { result } = (await call('getUpdates')).body
  assert.deepEqual(
    result.map(({ message }: { readonly message: { readonly text: string } }) => message.text),
    ['1 0', '2 0', '1 1', '2 1', '2 2'],
  )
  assert.deepEqual(await control.driven(botId), { 1: 2, 2: 3 })
})

test('it speaks TLS', async (t) => {
  const keys = issueCertificate({ name: '127.0.0.1', alternatives: 'IP:127.0.0.1' })
  const origin = await Origin.start(t, keys)
  assert.match(origin.url, /^https:/)
  await origin.control.register([{ botId: 5, token: 'five' }])
  const asked = get(`${origin.url}/botfive/getMe`, { ca: keys.cert, agent: false })
  const [response]: IncomingMessage[] = await once(asked, 'response')
  assert.equal(response?.resume().statusCode, 200)
})
