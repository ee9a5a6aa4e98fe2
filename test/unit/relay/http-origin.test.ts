import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HttpOrigin } from '../../../src/relay/http-origin.ts'
import { parseEndpoint } from '../../../src/webhook/endpoint.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'
import { loopbackNetwork } from '../../support/webhook/webhook-setup.ts'

test('relays that connect at the same time print no warning, and end with the origin', async (t) => {
  const warnings: Error[] = []
  const hear = (warning: Error): void => void warnings.push(warning)
  process.on('warning', hear)
  t.after(() => process.off('warning', hear))
  let connecting = 0
  const origin = new HttpOrigin({
    endpoint: parseEndpoint('http://127.0.0.1:9', { local: true }),
    clock: new FakeClock(),
    random: () => 0.5,
    network: {
      ...loopbackNetwork,
      connect: ({ signal }) =>
        new Promise((_resolve, reject) => {
          connecting++
          signal?.addEventListener('abort', () => reject(new Error('closed')))
        }),
    },
  })
  const poll = { token: '100:secret', offset: undefined, types: [], limit: 100, waitS: 50 }
  const polls = Array.from({ length: 30 }, () =>
    origin.poll(poll, (answer) => Promise.resolve(answer), new AbortController().signal),
  )
  while (connecting < polls.length) await settle()
  await settle()
  assert.deepEqual(warnings.map(String), [])
  await origin.close()
  const answers = await Promise.all(polls)
  assert(answers.every((answer) => 'failure' in answer))
})
