import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { peerUser } from '../../../../src/cli/remote/peer-user.ts'

const own = process.getuid?.()

async function connected(t: TestContext, listen: string, host: string): Promise<Socket> {
  const server = createServer((socket) => socket.on('error', () => undefined)).listen(0, listen)
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, host)
  await once(socket, 'connect')
  t.after(() => {
    socket.destroy()
    server.close()
  })
  return socket
}

test('the other end of a connection belongs to a user, by IPv4, by IPv6, and by IPv4 at a socket of IPv6', async (t) => {
  for (const [listen, host] of [
    ['127.0.0.1', '127.0.0.1'],
    ['0.0.0.0', '127.0.0.2'],
    ['::1', '::1'],
    ['::', '::1'],
    ['::', '127.0.0.1'],
  ] as const) {
    assert.equal(peerUser(await connected(t, listen, host)), own, `${listen} ${host}`)
  }
})

const ends = {
  localAddress: '127.0.0.1',
  localPort: 0xc350,
  remoteAddress: '127.0.0.1',
  remotePort: 0x1f92,
}
const rest = '00000000:00000000 00:00000000 00000000'
const ours = `   0: 0100007F:C350 0100007F:1F92 01 ${rest}  1000        0 9001 1 0 20 4 30 10 -1\n`
const taken = (user: number, inode = 77): string =>
  `   1: 0100007F:1F92 0100007F:C350 01 ${rest} ${user}        0 ${inode} 1 0 20 4 30 10 -1\n`
const listens = (user: number, address = '0100007F'): string =>
  `   2: ${address}:1F92 ${'0'.repeat(address.length)}:0000 0A ${rest}   ${user}        0 55 1 0 20 4 30 10 -1\n`

test('who has taken a connection counts, and not who listens now', () => {
  assert.equal(peerUser(ends, listens(998) + ours + taken(33)), 33)
  const mapped = taken(34).replaceAll('0100007F', '0000000000000000FFFF00000100007F')
  assert.equal(peerUser(ends, listens(998) + ours + mapped), 34)
})

test('a connection that nobody has taken yet is that of who listens', () => {
  // Older kernels show root for it.
  const waiting = ours + taken(0, 0)
  assert.equal(peerUser(ends, waiting + listens(998)), 998)
  assert.equal(peerUser(ends, waiting + listens(998, '00000000')), 998)
  assert.equal(peerUser(ends, waiting + listens(998, '0'.repeat(32))), 998)
  // Two that listen, and nobody knows which one gets it.
  assert.equal(peerUser(ends, waiting + listens(998) + listens(33, '00000000')), undefined)
  assert.equal(peerUser(ends, waiting), undefined)
})

test('nobody of this machine has the other end if no socket of it has these addresses', () => {
  const others =
    taken(33).replace('C350', 'C351') + taken(33).replace('0100007F:1F92', '0200007F:1F92')
  assert.equal(peerUser(ends, listens(998) + ours + others), undefined)
  assert.equal(peerUser(ends, ''), undefined)
  assert.equal(peerUser({ ...ends, remoteAddress: undefined }, ours + taken(33)), undefined)
})
