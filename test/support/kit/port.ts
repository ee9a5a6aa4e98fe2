/** Ports of test servers. */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { createServer, type Server } from 'node:net'

export function portOf(server: Server): number {
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  return address.port
}

/** Below the range from which the kernel takes ports for connections and for port 0, so that nobody gets one meanwhile. */
const portMin = 20_000
const portEnd = 32_000

/** Returns a port of this machine without a listener. */
export function freePort(): Promise<number> {
  return freePorts(1)
}

/** Returns the first of several free ports in a row. */
export async function freePorts(count: number): Promise<number> {
  for (;;) {
    const first = randomInt(portMin, portEnd - count)
    const ports = Array.from({ length: count }, (_, nth) => isFree(first + nth))
    if ((await Promise.all(ports)).every(Boolean)) return first
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
