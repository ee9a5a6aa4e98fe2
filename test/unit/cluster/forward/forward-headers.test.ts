import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  forwardedRequestHead,
  forwardedRequestHeaders,
  forwardedResponseHeaders,
} from '../../../../src/cluster/forward/forward-headers.ts'

const origin = { listener: 'bot', clientAddress: '192.0.2.1', hops: 0 } as const
const added = ['x-postbote-client-address', '192.0.2.1', 'x-postbote-hops', '1']

test('headers of the connection are removed, and all others pass in order and with repetitions', () => {
  const headers = forwardedRequestHeaders({
    method: 'POST',
    rawHeaders:
      'Host|x|Connection|Upgrade, HTTP2-Settings, X-Mine|Upgrade|h2c|HTTP2-Settings|AAA|x-mine|1|TE|trailers|Transfer-Encoding|chunked|Cookie|a|cookie|b|Expect|100-continue|Content-Encoding|gzip'.split(
        '|',
      ),
    origin,
    bodyBytes: 5,
  })
  const kept = ['Host', 'x', 'Cookie', 'a', 'cookie', 'b', 'Content-Encoding', 'gzip']
  assert.deepEqual(headers, [...kept, ...added, 'Content-Length', '5'])
})

test('the owner gets the headers that a request tries to remove with its Connection header', () => {
  const rawHeaders = 'Connection|close, Content-Type, host|Host|x|Content-Type|a/b'.split('|')
  const head = forwardedRequestHead({ method: 'GET', url: '/', rawHeaders, origin, bodyBytes: 0 })
  assert.match(head, /^GET \/ HTTP\/1.1\r\nHost: x\r\nContent-Type: a\/b\r\nx-postbote/)
})

const headersOf = (method: string, bodyBytes: number) =>
  forwardedRequestHeaders({ method, rawHeaders: ['Content-Length', '9'], origin, bodyBytes })

test('a GET without a body gets no length, and a POST without one gets 0', () => {
  assert.deepEqual(headersOf('GET', 0), added)
  assert.deepEqual(headersOf('GET', 2), [...added, 'Content-Length', '2'])
  assert.deepEqual(headersOf('POST', 0), [...added, 'Content-Length', '0'])
})

test('a body of unknown length is chunked', () => {
  const rawHeaders = ['Transfer-Encoding', 'chunked']
  assert.deepEqual(
    forwardedRequestHeaders({ method: 'POST', rawHeaders, origin, bodyBytes: undefined }),
    [...added, 'Transfer-Encoding', 'chunked'],
  )
})

test('an owner that ends its connection ends that of the client', () => {
  const kept = ['Content-Type', 'application/json', 'Content-Length', '2']
  const keepAlive = [...kept, 'Connection', 'keep-alive', 'Keep-Alive', 'timeout=80']
  assert.deepEqual(forwardedResponseHeaders(keepAlive), kept)
  assert.deepEqual(forwardedResponseHeaders([...kept, 'connection', 'Close']), [
    ...kept,
    'Connection',
    'close',
  ])
})
