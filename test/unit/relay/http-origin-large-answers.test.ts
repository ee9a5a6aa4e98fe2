import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { HttpOrigin, relayLargeAnswersMax } from '../../../src/relay/http-origin.ts'
import { parseEndpoint } from '../../../src/webhook/endpoint.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { portOf } from '../../support/kit/port.ts'
import { until } from '../../support/kit/until.ts'
import { loopbackNetwork } from '../../support/webhook/webhook-setup.ts'

const poll = { token: '100:secret', offset: undefined, types: [], limit: 100, waitS: 50 }
const small = '{"ok":true,"result":[]}'
const large = `${small}${' '.repeat(100_000)}`

test('few large answers are worked on at a time, and small ones do not wait for them', async (t) => {
  const server = createServer((request, response) => {
    response.end(request.url?.startsWith('/bot100:') === true ? large : small)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = new HttpOrigin({
    endpoint: parseEndpoint(`http://127.0.0.1:${portOf(server)}`, { local: true }),
    clock: new FakeClock(),
    random: () => 0.5,
    network: loopbackNetwork,
  })
  t.after(async () => {
    await origin.close()
    server.close()
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
