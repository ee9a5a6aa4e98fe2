import assert from 'node:assert/strict'
import { test } from 'node:test'
import { postToOwner } from '../../../../src/links/ask/owner-stream.ts'
import { FakeOwnerStream } from '../../../support/network/fake-owner-stream.ts'

test('a post writes its body, and returns the complete response', async () => {
  const stream = new FakeOwnerStream()
  const answer = postToOwner(stream, '{"a":1}')
  assert.deepEqual([stream.written, stream.isEnded], ['{"a":1}', true])
  const body = stream.answer(201)
  body.write('fi')
  body.end('ne')
  assert.deepEqual(await answer, { status: 201, retryAfter: undefined, text: 'fine' })
})

test('a post that is aborted gives its request up, also if it was aborted before', async () => {
  for (const isBefore of [false, true]) {
    const stream = new FakeOwnerStream()
    const over = new AbortController()
    if (isBefore) over.abort()
    const answer = postToOwner(stream, '', over.signal)
    over.abort()
    assert(stream.isDestroyed)
    stream.refuse('OUTCOME_UNKNOWN')
    await assert.rejects(answer, { code: 'OUTCOME_UNKNOWN' })
  }
})
