/** Ports of test servers. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

export function portOf(server: Server): number {
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  return address.port
}

/** Returns a port of this machine without a listener. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const port = portOf(server)
  server.close()
  await once(server, 'close')
  return port
}
