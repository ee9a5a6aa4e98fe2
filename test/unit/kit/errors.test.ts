import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorReplyText, errorResponse } from '../../../src/http/reply.ts'
import { type ErrorCode, errorKinds, PostboteError } from '../../../src/kit/errors.ts'

const codes = Object.keys(errorKinds) as ErrorCode[]

test('every 503 and 507 says when to come back, on both listeners', () => {
  const unavailable = codes.filter((code) => [503, 507].includes(errorKinds[code].status))
  assert(unavailable.length >= 10)
  for (const code of unavailable) {
    const error = new PostboteError(code)
    const { retryAfterS } = error
    assert(Number.isInteger(retryAfterS) && Number(retryAfterS) >= 1, code)
    assert(errorReplyText(error).endsWith(`,"parameters":{"retry_after":${retryAfterS}}}`), code)
    for (const listener of ['bot', 'private'] as const) {
      assert.match(errorResponse(listener, error).toString(), /\r\nRetry-After: [1-9]\d*\r\n/)
    }
  }
})

test('the code that raises an error may know better when to come back', () => {
  assert.equal(new PostboteError('STORE_UNAVAILABLE', { retryAfterS: 7 }).retryAfterS, 7)
  assert.match(new PostboteError('TOO_MANY_BODIES').message, /retry after 5$/)
  assert.equal(new PostboteError('UNKNOWN_TOKEN').retryAfterS, undefined)
})
