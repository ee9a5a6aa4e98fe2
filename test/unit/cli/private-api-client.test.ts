import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { CallRefusedError, PrivateApiClient } from '../../../src/cli/private-api-client.ts'
import { makeCertificate } from '../../support/certificates.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

const key = 'k'.repeat(32)

async function clientOf(t: TestContext, listener: RequestListener): Promise<PrivateApiClient> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  return clientAt(t, `http://127.0.0.1:${port}`)
}

function clientAt(t: TestContext, origin: string): Promise<PrivateApiClient> {
  const keyFile = join(temporaryDirectory(t), 'key')
  writeFileSync(keyFile, `${key}\n`)
  return PrivateApiClient.ofUrl({ origin, prefix: '/behind' }, keyFile)
}

test('a call has the prefix of the URL, the key, and its body as it is', async (t) => {
  const seen: unknown[] = []
  const client = await clientOf(t, (request, response) => {
    const answer = async (): Promise<void> => {
      seen.push([request.method, request.url, request.headers.authorization, await text(request)])
      response.setHeader('Content-Type', 'application/json; charset=utf-8')
      response.end('{"update_id":7}')
    }
    void answer()
  })
  const body = Buffer.from('{"message": {}}')
  assert.equal(await client.call({ method: 'POST', path: '/v1/x', body }), '{"update_id":7}')
  await client.call({ method: 'POST', path: '/v1/y', body: { a: 1 } })
  await client.call({ method: 'GET', path: '/v1/z' })
  assert.deepEqual(seen, [
    ['POST', '/behind/v1/x', `Bearer ${key}`, '{"message": {}}'],
    ['POST', '/behind/v1/y', `Bearer ${key}`, '{"a":1}'],
    ['GET', '/behind/v1/z', `Bearer ${key}`, ''],
  ])
})

test('a refusal has the code and the message of the server, and nothing of another program', async (t) => {
  const bodies = ['{"error":{"code":"UNKNOWN_BOT","message":"No bot"}}', '<html>s3cret</html>']
  const client = await clientOf(t, (_request, response) => {
    response.statusCode = 404
    response.end(bodies.shift())
  })
  const call = { method: 'GET', path: '/' } as const
  await assert.rejects(client.call(call), {
    name: 'CallRefusedError',
    message: 'the server refused the call: 404 UNKNOWN_BOT: No bot',
  })
  await assert.rejects(client.call(call), (error) => {
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
  const call = { method: 'GET', path: '/' } as const
  const foreign = {
    name: 'ForeignResponseError',
    message:
      /^the response of http:\S+ does not come from the private API of Postbote: check the address$/,
  }
  await assert.rejects(client.call(call), foreign)
  await assert.rejects(client.stream(call), foreign)
  await assert.rejects(client.open('/', { idleMs: 10_000 }), foreign)
})

test('a server that cannot be reached differs from a connection that was lost during a call', async (t) => {
  const client = await clientOf(t, (request) => request.socket.destroy())
  const call = { method: 'POST', path: '/' } as const
  await assert.rejects(client.send(call), /was lost \(ECONNRESET\), so the call may have been made/)
  // Port 1 of the loopback address is never used.
  const nobody = await clientAt(t, 'http://127.0.0.1:1')
  await assert.rejects(nobody.send(call), /^Error: no server responds at .* \(ECONNREFUSED\)$/)
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
    client.call({ method: 'GET', path: '/' }),
    /\(DEPTH_ZERO_SELF_SIGNED_CERT\): .* name its authority in NODE_EXTRA_CA_CERTS$/,
  )
})

test('a response without end is not read forever', async (t) => {
  const client = await clientOf(t, (_request, response) => {
    const chunk = Buffer.alloc(2 ** 20, 'x')
    const write = (): void => {
      while (!response.destroyed && response.write(chunk));
    }
    response.on('drain', write)
    response.on('error', () => undefined)
    write()
  })
  await assert.rejects(client.send({ method: 'GET', path: '/' }), /the response is too large/)
})

test('a response that lasts is read part by part, and a refusal of it is an error as of a call', async (t) => {
  const open: ServerResponse[] = []
  const client = await clientOf(t, (request, response) => {
    if (request.url === '/behind/gone') {
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
    for await (const part of await client.open('/tail', { idleMs: 10_000 })) {
      parts.push(part)
      if (parts.length === 1) open.at(-1)?.end('two')
    }
    return parts
  }
  assert.deepEqual(await read(), ['one \u00e4', 'two'])
  await assert.rejects(client.open('/gone', { idleMs: 10_000 }), {
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
  const lost = await client.open('/', { idleMs: 10_000 })
  open.at(-1)?.destroy()
  await assert.rejects(readAll(lost), /^Error: the connection to .* was lost/)
  const silent = await client.open('/', { idleMs: 50 })
  await assert.rejects(readAll(silent), /^Error: the connection to .* was lost/)
  const ending = new AbortController()
  const ended = await client.open('/', { idleMs: 600_000, signal: ending.signal })
  ending.abort()
  await assert.rejects(readAll(ended), /was lost/)
  open.forEach((response) => response.destroy())
})

async function readAll(parts: AsyncIterable<string>): Promise<void> {
  for await (const _ of parts);
}
