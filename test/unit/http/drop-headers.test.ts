import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { dropHeaders } from '../../../src/http/drop-headers.ts'

function requestWith(headers: IncomingMessage['headers']): IncomingMessage {
  const request = new IncomingMessage(new Socket())
  request.headers = headers
  request.rawHeaders = Object.entries(headers).flat().map(String)
  return request
}

test('a request that waits keeps only the headers that its response needs', () => {
  const request = requestWith({ host: 'a', 'accept-encoding': 'gzip', 'x-real-ip': '10.0.0.1' })
  dropHeaders(request)
  assert.deepEqual(request.headers, { 'accept-encoding': 'gzip', 'x-real-ip': '10.0.0.1' })
  assert.deepEqual(request.rawHeaders, [])
  const plain = requestWith({ host: 'a' })
  dropHeaders(plain)
  assert.deepEqual(plain.headers, {})
})

test('a request keeps its headers while its body arrives', () => {
  const request = requestWith({ host: 'a', 'content-length': '5' })
  dropHeaders(request)
  assert.deepEqual(request.headers, { host: 'a', 'content-length': '5' })
  request.complete = true
  dropHeaders(request)
  assert.deepEqual(request.headers, {})
})
