import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import Fastify from 'fastify'
import { PortalListener } from '../../../src/modules/portal-listener.ts'
import type { PortalApiOptions } from '../../../src/modules/portal-api.ts'

test('a request of the owner is refused if its API cannot start, and the next one starts it', async (t) => {
  const logged: unknown[] = []
  const options = { log: { error: (fields: unknown) => logged.push(fields) } }
  let made = 0
  const portal = new PortalListener(
    { isPortalCall: () => true },
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only the log is used
    options as unknown as PortalApiOptions,
    () => {
      made += 1
      const app = Fastify()
      if (made === 1) app.addHook('onReady', () => Promise.reject(new Error('no page')))
      else app.get('/portal/', async () => 'page')
      return app
    },
  )
  const server = createServer(portal.listener(() => undefined)).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const ask = () => fetch(`http://127.0.0.1:${port}/portal/`)
  const refused = await ask()
  assert.equal(refused.status, 500)
  assert.deepEqual(logged, [{ cause: 'Error: no page' }])
  const served = await ask()
  assert.deepEqual([served.status, await served.text()], [200, 'page'])
})
