import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type TestContext, test } from 'node:test'
import { HelperThread } from '../../../../src/kit/helper-thread.ts'
import { HttpOrigin, relayLargeAnswersMax } from '../../../../src/features/relay/http-origin.ts'
import { kib } from '../../../../src/kit/limits.ts'
import { relayAnswerBytesMax } from '../../../../src/features/relay/limits.ts'
import { parseEndpoint } from '../../../../src/delivery/endpoint/endpoint.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { portOf } from '../../../support/kit/port.ts'
import { silentLog } from '../../../support/kit/silent-log.ts'
import { until } from '../../../support/kit/until.ts'
import { loopbackNetwork } from '../../../support/webhook/webhook-setup.ts'

const poll = { token: '100:secret', offset: undefined, types: [], limit: 100, waitS: 50 }
const small = '{"ok":true,"result":[]}'
const large = `${small}${' '.repeat(100_000)}`

async function originThat(t: TestContext, answers: RequestListener): Promise<HttpOrigin> {
  const server = createServer(answers)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = new HttpOrigin(
    { clock: new FakeClock(), log: silentLog, random: () => 0.5 },
    parseEndpoint(`http://127.0.0.1:${portOf(server)}`, { local: true }),
    loopbackNetwork,
  )
  t.after(async () => {
    await origin.close()
    server.close()
  })
  return origin
}

test('few large answers are worked on at a time, and small ones do not wait for them', async (t) => {
  const origin = await originThat(t, (request, response) => {
    response.end(request.url?.startsWith('/bot100:') === true ? large : small)
  })
  const leave: (() => void)[] = []
  const { signal } = new AbortController()
  const polls = Array.from({ length: relayLargeAnswersMax + 2 }, () =>
    origin.poll(poll, () => new Promise<void>((resolve) => leave.push(resolve)), signal),
  )
  await until(() => leave.length === relayLargeAnswersMax)
  const ofAnother = { ...poll, token: '200:secret' }
  const answer = await origin.poll(ofAnother, (each) => Promise.resolve(each), signal)
  assert.deepEqual(answer, { updates: [] })
  assert.equal(leave.length, relayLargeAnswersMax)
  for (let nth = 0; nth < polls.length; nth++) {
    await until(() => leave.length > nth)
    leave[nth]?.()
  }
  await Promise.all(polls)
})

test('an answer that is large is read by a thread, whole or cut off, and a small one is not', async (t) => {
  const bodies = [64 * kib, 64 * kib + 1, relayAnswerBytesMax, relayAnswerBytesMax + kib]
  const origin = await originThat(t, (request, response) => {
    const bytes = Number(request.url?.match(/\d+/)?.[0])
    const [before, after] = ['{"ok":true,"result":[{"update_id":1,"message":{"text":"', '"}}]}']
    response.end(before.padEnd(bytes - after.length, 'x') + after)
  })
  const run = t.mock.method(HelperThread.prototype, 'run')
  const calls: number[] = []
  for (const bytes of bodies) {
    const before = run.mock.callCount()
    const one = { ...poll, token: `${bytes}:secret`, limit: 1 }
    const answer = await origin.poll(
      one,
      (each) => Promise.resolve(each),
      new AbortController().signal,
    )
    assert('updates' in answer)
    assert.equal(answer.updates[0]?.isCut, bytes > relayAnswerBytesMax ? true : undefined)
    calls.push(run.mock.callCount() - before)
  }
  assert.deepEqual(calls, [0, 1, 1, 1])
})
