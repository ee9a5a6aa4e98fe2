import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request, type ServerResponse } from 'node:http'
import { test } from 'node:test'
import { meterRequests } from '../../../../src/delivery/outgoing/meter-requests.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { portOf } from '../../../support/kit/port.ts'

test('an answer that brings a byte now and then ends after its time, and a complete one leaves no timer', async (t) => {
  const responses: ServerResponse[] = []
  const server = createServer((_request, response) => {
    responses.push(response)
    response.write('a')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const clock = new FakeClock()
  const stop = meterRequests({ clock, bytesMax: 10_000, timeoutMs: 60_000 })
  t.after(() => {
    stop()
    server.closeAllConnections()
    server.close()
  })
  const ask = async () => {
    const call = request(`http://127.0.0.1:${portOf(server)}`).end()
    call.on('error', () => undefined)
    const [answer] = await once(call, 'response')
    return answer
  }
  const slow = await ask()
  const failed = once(slow, 'error')
  for (let nth = 0; nth < 60; nth++) {
    responses[0]?.write('a')
    await clock.advance(1_000)
  }
  const [error] = await failed
  assert.equal(error.message, 'no complete answer in time')
  const good = await ask()
  responses[1]?.end('b')
  await once(good.resume(), 'close')
  assert.equal(clock.timers, 0)
})
