import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { HelperProcess } from '../../../../bench/helper-process.ts'
import { type HttpConnection, type HttpSample, numberMark } from '../../../../bench/http-sample.ts'

const body = 'hello'
const durationMs = 50

interface Seen {
  readonly port: number
  readonly urls: string[]
  readonly connections: () => number
}

async function startServer(context: TestContext): Promise<Seen> {
  const urls: string[] = []
  let connections = 0
  const server = createServer((request, response) => {
    urls.push(request.url ?? '')
    response.writeHead(200, { 'Content-Length': body.length }).end(body)
  })
  server.on('connection', () => (connections += 1))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => server.close())
  // oxlint-disable-next-line no-unsafe-type-assertion -- a TCP server's address
  return { port: (server.address() as AddressInfo).port, urls, connections: () => connections }
}

async function load(context: TestContext, plan: Partial<HttpConnection>): Promise<HttpSample> {
  const helper = new HelperProcess('http-load', { atEnd: (close) => context.after(close) })
  const length = { bodyBytesMin: body.length, bodyBytesMax: body.length }
  const connection = { port: 0, requests: [], ...length, ...plan }
  // Each run makes one request at least.
  const first = await helper.ask<HttpSample>({ connections: [connection], durationMs })
  const second = await helper.ask<HttpSample>({ connections: [connection], durationMs })
  return {
    ...second,
    operations: first.operations + second.operations,
    delaysMs: [...first.delaysMs, ...second.delaysMs],
  }
}

test('the mark in a request is a new number each time', async (context) => {
  const { port, urls, connections } = await startServer(context)
  const requests = [`GET /${numberMark} HTTP/1.1\r\nHost: a\r\n\r\n`]
  const { operations } = await load(context, { port, requests })
  assert.ok(operations >= 2)
  assert.equal(new Set(urls).size, operations)
  assert.match(urls[0] ?? '', /^\/\d{16}$/)
  assert.equal(connections(), 1)
})

test('a plan of one request per connection opens a connection for each', async (context) => {
  const { port, connections } = await startServer(context)
  const requests = ['GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n']
  const { operations } = await load(context, { port, requests, isOneShot: true })
  assert.ok(operations >= 2)
  assert.equal(connections(), operations)
})

test('probes have delays and do not count as operations', async (context) => {
  const { port } = await startServer(context)
  const requests = ['GET / HTTP/1.1\r\nHost: a\r\n\r\n']
  const { operations, delaysMs } = await load(context, { port, requests, probeEveryMs: 1 })
  assert.equal(operations, 0)
  assert.ok(delaysMs.length >= 2)
})

test('a response of another length fails the run', async (context) => {
  const { port } = await startServer(context)
  const requests = ['GET / HTTP/1.1\r\nHost: a\r\n\r\n']
  const wrong = { port, requests, bodyBytesMin: 6, bodyBytesMax: 7 }
  await assert.rejects(load(context, wrong), /answered what was not expected/)
})
