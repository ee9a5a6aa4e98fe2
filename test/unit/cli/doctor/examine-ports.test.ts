import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { addressFinding } from '../../../../src/cli/doctor/examine-ports.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

test('a port that another program has is a fault, and a free one is not', async () => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const address = { host: '127.0.0.1', port }
  assert.deepEqual(await addressFinding(address, '--http'), {
    level: 'bad',
    text: `another program has 127.0.0.1:${port}: end it, or choose another --http-port`,
  })
  server.close()
  await once(server, 'close')
  assert.equal((await addressFinding(address, '--http')).level, 'good')
})

test('an address that this machine does not have is a fault', async () => {
  const finding = await addressFinding({ host: '192.0.2.1', port: 0 }, '--admin')
  assert.equal(finding.level, 'bad')
  assert.match(
    finding.text,
    /^a server cannot listen at 192\.0\.2\.1:0 \(EADDRNOTAVAIL\): choose another --admin-ip-address$/,
  )
})

test('a socket needs a directory in which it can be made', async (t) => {
  const directory = temporaryDirectory(t)
  assert.equal((await addressFinding({ path: join(directory, 'a.sock') }, '--http')).level, 'good')
  const missing = await addressFinding({ path: join(directory, 'no', 'a.sock') }, '--http')
  assert.equal(missing.level, 'bad')
})
