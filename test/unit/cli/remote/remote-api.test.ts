import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { CallRefusedError, RemoteApi } from '../../../../src/cli/remote/remote-api.ts'
import { botOperations } from '../../../../src/features/bots/bot-operations.ts'
import { eventOperations } from '../../../../src/features/events/event-operations.ts'
import { keyOperations } from '../../../../src/features/keys/key-operations.ts'
import { fleetOperations } from '../../../../src/features/fleet/fleet-operations.ts'
import { tailOperations } from '../../../../src/features/tail/tail-operations.ts'
import { shardOperations } from '../../../../src/features/backup/shard-operations.ts'
import { updateOperations } from '../../../../src/features/ingest/update-operations.ts'
import { makeCertificate } from '../../../support/network/certificates.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

const { getSummary } = fleetOperations
const { exportShard } = shardOperations
const { followEvents } = eventOperations
const key = 'k'.repeat(32)

async function clientOf(t: TestContext, listener: RequestListener): Promise<RemoteApi> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  return clientAt(t, `http://127.0.0.1:${port}`)
}

function clientAt(t: TestContext, origin: string): Promise<RemoteApi> {
  const keyFile = join(temporaryDirectory(t), 'key')
  writeFileSync(keyFile, `${key}\n`)
  return RemoteApi.ofUrl({ origin, prefix: '/behind' }, keyFile)
}

test('a call has the prefix of the URL, the key, and its body as it is', async (t) => {
  const seen: unknown[] = []
  const answers = [
    '{"update_id":7}',
    '{"bot_id":100,"token":"100:a"}',
    '{"key_id":"a/b","revoked":true}',
  ]
  const client = await clientOf(t, (request, response) => {
    const answer = async (): Promise<void> => {
      seen.push([request.method, request.url, request.headers.authorization, await text(request)])
      response.setHeader('Content-Type', 'application/json; charset=utf-8')
      response.end(answers.shift())
    }
    void answer()
  })
  const raw = '{"message": {}}'
  const query = { ttl: 5, ordering_key: 'a b&c', test: false, validate: undefined }
  const pushed = await client.call(updateOperations.pushUpdate, { id: 100, query }, { raw })
  assert.deepEqual(pushed, { text: '{"update_id":7}', value: { update_id: 7 } })
  await client.call(botOperations.rotateToken, { id: 100, body: { overlap: 1 } })
  await client.call(keyOperations.revokeKey, { key_id: 'a/b' })
  assert.deepEqual(seen, [
    ['POST', '/behind/v1/bots/100/updates?ttl=5&ordering_key=a+b%26c', `Bearer ${key}`, raw],
    ['POST', '/behind/v1/bots/100/token', `Bearer ${key}`, '{"overlap":1}'],
    ['DELETE', '/behind/v1/keys/a%2Fb', `Bearer ${key}`, ''],
  ])
})

test('a refusal has the code and the message of the server, and nothing of another program', async (t) => {
  const bodies = ['{"error":{"code":"UNKNOWN_BOT","message":"No bot"}}', '<html>s3cret</html>']
  const client = await clientOf(t, (_request, response) => {
    response.statusCode = 404
    response.end(bodies.shift())
  })
  await assert.rejects(client.call(getSummary, {}), {
    name: 'CallRefusedError',
    message: 'the server refused the call: 404 UNKNOWN_BOT: No bot',
  })
  await assert.rejects(client.call(getSummary, {}), (error) => {
    assert(error instanceof CallRefusedError)
    assert.equal(
      error.message,
      'the server refused the call: status 404, without an error of Postbote',
    )
    return true
  })
})

test('another program that responds with 200 is named as such, and nothing of its response is shown', async (t) => {
  const client = await clientOf(t, (_request, response) => {
    response.setHeader('Content-Type', 'text/html')
    response.end('<html>s3cret</html>')
  })
  const foreign = {
    name: 'ForeignResponseError',
    message:
      /^the response of http:\S+ does not come from the private API of Postbote: check the address$/,
  }
  await assert.rejects(client.call(getSummary, {}), foreign)
  await assert.rejects(client.stream(exportShard, { shard: 1 }), foreign)
  await assert.rejects(client.follow(followEvents, {}, { idleMs: 10_000 }), foreign)
})

test('a server that cannot be reached differs from a connection that was lost during a call', async (t) => {
  const client = await clientOf(t, (request) => request.socket.destroy())
  await assert.rejects(
    client.call(getSummary, {}),
    /was lost \(ECONNRESET\), so the call may have been made/,
  )
  // Port 1 of the loopback address is never used.
  const nobody = await clientAt(t, 'http://127.0.0.1:1')
  await assert.rejects(
    nobody.call(getSummary, {}),
    /^Error: no server responds at .* \(ECONNREFUSED\)$/,
  )
})

test('an untrusted certificate is an error that says what to do', async (t) => {
  const { key: privateKey, cert } = makeCertificate('127.0.0.1')
  const server = createSecureServer({ key: privateKey, cert }, (_request, response) => {
    response.end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const client = await clientAt(t, `https://127.0.0.1:${port}`)
  await assert.rejects(
    client.call(getSummary, {}),
    /\(DEPTH_ZERO_SELF_SIGNED_CERT\): .* name its authority in NODE_EXTRA_CA_CERTS$/,
  )
})

test('a response without end is not read forever', async (t) => {
  const client = await clientOf(t, (_request, response) => {
    response.setHeader('Content-Type', 'application/json')
    const chunk = Buffer.alloc(2 ** 20, 'x')
    const write = (): void => {
      while (!response.destroyed && response.write(chunk));
    }
    response.on('drain', write)
    response.on('error', () => undefined)
    write()
  })
  await assert.rejects(client.call(getSummary, {}), /the response is too large/)
})

test('a response that lasts is read part by part, and a refusal of it is an error as of a call', async (t) => {
  const open: ServerResponse[] = []
  const client = await clientOf(t, (request, response) => {
    if (request.url?.includes('/tail') === true) {
      response.statusCode = 404
      response.end('{"error":{"code":"UNKNOWN_BOT","message":"No bot"}}')
      return
    }
    open.push(response)
    response.setHeader('Content-Type', 'text/event-stream')
    response.write('one \u00e4')
  })
  const read = async (): Promise<string[]> => {
    const parts: string[] = []
    for await (const part of await client.follow(followEvents, {}, { idleMs: 10_000 })) {
      parts.push(part)
      if (parts.length === 1) open.at(-1)?.end('two')
    }
    return parts
  }
  assert.deepEqual(await read(), ['one \u00e4', 'two'])
  await assert.rejects(client.follow(tailOperations.tailQueue, { id: 100 }, { idleMs: 10_000 }), {
    name: 'CallRefusedError',
    message: 'the server refused the call: 404 UNKNOWN_BOT: No bot',
  })
})

test('a response that lasts fails if its connection is lost or silent, and the signal ends it', {
  timeout: 20_000,
}, async (t) => {
  const open: ServerResponse[] = []
  const client = await clientOf(t, (_request, response) => {
    open.push(response)
    response.setHeader('Content-Type', 'text/event-stream')
    response.write('begun')
  })
  const lost = await client.follow(followEvents, {}, { idleMs: 10_000 })
  open.at(-1)?.destroy()
  await assert.rejects(readAll(lost), /^Error: the connection to .* was lost/)
  const silent = await client.follow(followEvents, {}, { idleMs: 50 })
  await assert.rejects(readAll(silent), /^Error: the connection to .* was lost/)
  const ending = new AbortController()
  const ended = await client.follow(followEvents, {}, { idleMs: 600_000, signal: ending.signal })
  ending.abort()
  await assert.rejects(readAll(ended), /was lost/)
  open.forEach((response) => response.destroy())
})

async function readAll(parts: AsyncIterable<string>): Promise<void> {
  for await (const _ of parts);
}
