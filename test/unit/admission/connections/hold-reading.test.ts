import assert from 'node:assert/strict'
import { createConnection, createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { holdReading } from '../../../../src/admission/connections/hold-reading.ts'

async function turns(count: number): Promise<void> {
  for (let nth = 0; nth < count; nth++) await nextTurn()
}

test('a held connection is not read, whoever resumes it, until all holders let it go', async (t) => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  const client = createConnection(address.port, '127.0.0.1')
  t.after(() => {
    client.destroy()
    server.close()
  })
  const [socket]: Socket[] = await once(server, 'connection')
  assert(socket)
  for (const piece of ['3', '2', '1']) socket.unshift(piece)
  const seen: string[] = []
  const holders: (() => void)[] = []
  socket.on('data', (piece: Buffer) => {
    seen.push(piece.toString())
    if (seen.length > 1) return
    holders.push(holdReading(socket), holdReading(socket))
    // node:http does this after each request.
    socket.resume()
  })
  await turns(3)
  assert.deepEqual(seen, ['1'])
  holders[0]?.()
  holders[0]?.()
  socket.resume()
  await turns(3)
  assert.deepEqual(seen, ['1'])
  holders[1]?.()
  await turns(3)
  assert.deepEqual(seen, ['1', '2', '3'])
})
