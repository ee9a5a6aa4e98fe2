import assert from 'node:assert/strict'
import { test } from 'node:test'
import { givenRequestId, presentRequestId, requestIdOf } from '../../../src/http/request-id.ts'

function request(id?: string): { readonly headers: Readonly<Record<string, string>> } {
  return { headers: id === undefined ? {} : { 'x-request-id': id } }
}

test('the id of the client counts if it is 1 to 64 visible characters of ASCII', () => {
  for (const id of ['a', '!~', 'x'.repeat(64), '7f0c:1/2']) {
    assert.equal(givenRequestId(request(id)), id)
    assert.equal(requestIdOf(request(id)), id)
  }
  // Two headers of a client are joined with a space.
  for (const id of ['', 'x'.repeat(65), 'a b', 'a, b', 'a\tb', 'é', 'a\n']) {
    assert.equal(givenRequestId(request(id)), undefined, id)
    assert.notEqual(requestIdOf(request(id)), id)
  }
})

test('an id is made when it is used first, and stays the same', () => {
  const own = request()
  assert.equal(presentRequestId(own), undefined)
  const id = requestIdOf(own)
  assert.match(id, /^[!-~]{1,64}$/)
  assert.equal(requestIdOf(own), id)
  assert.equal(presentRequestId(own), id)
  assert.notEqual(requestIdOf(request()), id)
})
