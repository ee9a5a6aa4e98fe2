import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  forwardedRequestHeaders,
  ownRequestHeaders,
} from '../../../../src/links/forward/forward-headers.ts'

test('headers of the connection are removed, and all others pass in order and with repetitions', () => {
  const headers = forwardedRequestHeaders({
    method: 'POST',
    rawHeaders:
      'Host|x|Connection|Upgrade, HTTP2-Settings, X-Mine|Upgrade|h2c|HTTP2-Settings|AAA|x-mine|1|TE|trailers|Transfer-Encoding|chunked|Cookie|a|cookie|b|Expect|100-continue|Content-Encoding|gzip'.split(
        '|',
      ),
    bodyBytes: 5,
  })
  const kept = ['Host', 'x', 'Cookie', 'a', 'cookie', 'b', 'Content-Encoding', 'gzip']
  assert.deepEqual(headers, [...kept, 'Content-Length', '5'])
})

test('the owner gets the headers that a request tries to remove with its Connection header', () => {
  const rawHeaders = 'Connection|close, Content-Type, host|Host|x|Content-Type|a/b'.split('|')
  const headers = ownRequestHeaders({ method: 'GET', rawHeaders, bodyBytes: 0 })
  assert.deepEqual(headers, ['Host', 'x', 'Content-Type', 'a/b'])
})

const headersOf = (method: string, bodyBytes: number) =>
  forwardedRequestHeaders({ method, rawHeaders: ['Content-Length', '9'], bodyBytes })

test('a GET without a body gets no length, and a POST without one gets 0', () => {
  assert.deepEqual(headersOf('GET', 0), [])
  assert.deepEqual(headersOf('GET', 2), ['Content-Length', '2'])
  assert.deepEqual(headersOf('POST', 0), ['Content-Length', '0'])
})

test('a body of unknown length is chunked', () => {
  const rawHeaders = ['Transfer-Encoding', 'chunked']
  assert.deepEqual(forwardedRequestHeaders({ method: 'POST', rawHeaders, bodyBytes: undefined }), [
    'Transfer-Encoding',
    'chunked',
  ])
})
