import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { HttpOrigin } from '../../../../src/features/relay/http-origin.ts'
import { relayAnswerBytesMax } from '../../../../src/features/relay/limits.ts'
import type { OriginAnswer, OriginFailure } from '../../../../src/features/relay/origin.ts'
import { parseEndpoint } from '../../../../src/delivery/endpoint/endpoint.ts'
import { webhookResolvedForMs } from '../../../../src/delivery/endpoint/resolve.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'
import { portOf } from '../../../support/kit/port.ts'
import { silentLog } from '../../../support/kit/silent-log.ts'
import { until } from '../../../support/kit/until.ts'
import { brokenOff, type HostileAnswer, notHttp } from '../../../support/network/hostile-answers.ts'
import { startHostileServer } from '../../../support/network/hostile-server.ts'
import { loopbackNetwork } from '../../../support/webhook/webhook-setup.ts'

const poll = { token: '100:secret', offset: undefined, types: [], limit: 100, waitS: 50 }
const asIs = <Answer>(answer: Answer): Promise<Answer> => Promise.resolve(answer)

test('relays that connect at the same time print no warning, and end with the origin', async (t) => {
  const warnings: Error[] = []
  const hear = (warning: Error): void => void warnings.push(warning)
  process.on('warning', hear)
  t.after(() => process.off('warning', hear))
  let connecting = 0
  const origin = new HttpOrigin(
    { clock: new FakeClock(), log: silentLog, random: () => 0.5 },
    parseEndpoint('http://127.0.0.1:9', { local: true }),
    {
      ...loopbackNetwork,
      connect: ({ signal }) =>
        new Promise((_resolve, reject) => {
          connecting++
          signal?.addEventListener('abort', () => reject(new Error('closed')))
        }),
    },
  )
  const polls = Array.from({ length: 30 }, () =>
    origin.poll(poll, asIs, new AbortController().signal),
  )
  while (connecting < polls.length) await settle()
  await settle()
  assert.deepEqual(warnings.map(String), [])
  await origin.close()
  const answers = await Promise.all(polls)
  assert(answers.every((answer) => 'failure' in answer))
})

/** An origin whose responses a test writes. */
async function dripping(t: TestContext, start: (response: ServerResponse) => void) {
  const responses: ServerResponse[] = []
  const server = createServer((_request, response) => {
    responses.push(response)
    start(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const clock = new FakeClock()
  const origin = new HttpOrigin(
    { clock, log: silentLog, random: () => 0.5 },
    parseEndpoint(`http://127.0.0.1:${portOf(server)}`, { local: true }),
    loopbackNetwork,
  )
  t.after(async () => {
    await origin.close()
    server.close()
    server.closeAllConnections()
  })
  return { origin, clock, responses }
}

test('an origin that says for ever that it works on it has the time of a poll', async (t) => {
  const { origin, clock, responses } = await dripping(t, (response) => response.writeProcessing())
  const answer = origin.poll(poll, asIs, new AbortController().signal)
  await until(() => responses.length === 1)
  await clock.advance(66_000)
  const { failure } = (await answer) as { readonly failure: object }
  assert.deepEqual(failure, { reason: 'The origin answers too slowly', isPassing: true })
})

test('an answer that drips is given up, and asked for in smaller parts', async (t) => {
  const { origin, clock, responses } = await dripping(t, (response) => response.write('{'))
  let hasBegun = false
  const answer = origin.poll(poll, asIs, new AbortController().signal)
  void answer.then(() => (hasBegun = true))
  await until(() => responses.length === 1)
  await until(async () => {
    responses[0]?.write(' ')
    await clock.advance(10_000)
    return hasBegun
  })
  const { failure } = (await answer) as { readonly failure: object }
  assert.deepEqual(failure, { reason: 'The origin answers too slowly', isTooLarge: true })
})

test('a poll that waits for its turn ends when its relay does, and the others have their turns', async (t) => {
  const large = `{"ok":true,"result":[{"update_id":1,"poll":{"a":"${'x'.repeat(100_000)}`
  const { origin, responses } = await dripping(t, (response) => response.write(large))
  const ends = Array.from({ length: 6 }, () => new AbortController())
  const answers = ends.map(({ signal }) => origin.poll(poll, asIs, signal))
  const outcomes = Promise.allSettled(answers)
  await until(() => responses.length === 6)
  // The last ones wait for the first four.
  for (const nth of [5, 4, 3, 2, 1]) {
    ends[nth]?.abort()
    await assert.rejects(answers[nth] ?? Promise.resolve())
  }
  for (const response of responses) response.end('"}}]}')
  const last = await answers[0]
  assert(last !== undefined && 'updates' in last && last.updates.length === 1)
  await outcomes
})

test('one update that is larger than an answer may be is told by its id; of several, fewer are asked for', async (t) => {
  const text = 'x'.repeat(relayAnswerBytesMax)
  const { origin } = await dripping(t, (response) =>
    response.end(`{"ok":true,"result":[{"update_id":7,"message":{"text":"${text}"}}]}`),
  )
  const ask = (limit: number) => origin.poll({ ...poll, limit }, asIs, new AbortController().signal)
  const { failure } = (await ask(2)) as { readonly failure: OriginFailure }
  assert.equal(failure.isTooLarge, true)
  const answer = await ask(1)
  assert('updates' in answer && answer.updates.length === 1)
  assert.deepEqual([answer.updates[0]?.updateId, answer.updates[0]?.isCut], [7, true])
})

test('a name is judged again with the address that it has later', async (t) => {
  const server = createServer((_request, response) => {
    response.writeHead(200, { connection: 'close' }).end('{"ok":true,"result":[]}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const clock = new FakeClock()
  let address = '127.0.0.1'
  const connected: (string | undefined)[] = []
  const origin = new HttpOrigin(
    { clock, log: silentLog, random: () => 0.5 },
    parseEndpoint(`http://origin.example:${portOf(server)}`, { local: true }),
    {
      lookup: async () => [address],
      judge: async (addresses) => addresses.map((each) => each === '127.0.0.1'),
      connect: async (wanted) => {
        connected.push(wanted.address)
        return loopbackNetwork.connect(wanted)
      },
    },
  )
  t.after(async () => {
    await origin.close()
    server.close()
  })
  const ask = () => origin.poll(poll, asIs, new AbortController().signal)
  assert.deepEqual(await ask(), { updates: [] })
  address = '169.254.169.254'
  await clock.advance(webhookResolvedForMs * 1.1)
  const reserved = 'The origin cannot be reached: IP address 169.254.169.254 is reserved'
  await until(async () => {
    const answer = await ask()
    return 'failure' in answer && answer.failure.reason === reserved
  })
  assert.deepEqual(new Set(connected), new Set(['127.0.0.1']))
})

test('an origin that has moved is polled at its new address once the old one refuses connections', async (t) => {
  const server = createServer((_request, response) => response.end('{"ok":true,"result":[]}'))
  server.listen(0, '127.0.0.2')
  await once(server, 'listening')
  const clock = new FakeClock()
  const lookups = ['127.0.0.1', '127.0.0.2']
  const origin = new HttpOrigin(
    { clock, log: silentLog, random: () => 0.5 },
    parseEndpoint(`http://origin.example:${portOf(server)}`, { local: true }),
    { ...loopbackNetwork, lookup: async () => [lookups.shift() ?? 'none'] },
  )
  t.after(async () => {
    await origin.close()
    server.close()
    server.closeAllConnections()
  })
  const ask = () => origin.poll(poll, asIs, new AbortController().signal)
  const refused = { reason: 'The origin cannot be reached: Connection refused', isPassing: true }
  assert.deepEqual(await ask(), { failure: refused })
  assert.deepEqual(await ask(), { failure: refused }, 'it was looked up just now')
  await clock.advance(10_000)
  assert.deepEqual(await ask(), { updates: [] })
})

test('an answer of an origin that is none, or breaks off, is told as what it is', async (t) => {
  const list = 'Content-Length: 23\r\n\r\n{"ok":true,"result":[]}'
  const cases: readonly (readonly [HostileAnswer, OriginAnswer])[] = [
    [{ head: `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n${list}` }, { updates: [] }],
    [
      notHttp['settings of HTTP/2'],
      { failure: { reason: 'The origin sent frames of HTTP/2, and HTTP/1.1 is needed' } },
    ],
    [
      brokenOff['half a body'],
      {
        failure: { reason: 'The origin broke off its answer: Connection closed', isPassing: true },
      },
    ],
    [
      brokenOff['nothing, and the end'],
      { failure: { reason: 'The origin cannot be reached: Connection closed', isPassing: true } },
    ],
  ]
  for (const [answer, expected] of cases) {
    const server = await startHostileServer(t, answer)
    const origin = new HttpOrigin(
      { clock: new FakeClock(), log: silentLog, random: () => 0.5 },
      parseEndpoint(server.origin, { local: true }),
      loopbackNetwork,
    )
    t.after(() => origin.close())
    assert.deepEqual(await origin.poll(poll, asIs, new AbortController().signal), expected)
  }
})
