/** What `checkUpdate` says of a text. */
import assert from 'node:assert/strict'
import { PostboteError } from '../../../src/kit/errors.ts'
import { checkUpdate } from '../../../src/queue/check/check-update.ts'
import { updateTypes } from '../../../src/kit/update-types.ts'

/** Asserts that an update is accepted, and returns what was read of it. */
export function accept(json: string | Buffer): { type: string | undefined; text: string } {
  const { typeNumber, text } = checkUpdate(Buffer.from(json))
  return { type: updateTypes[typeNumber], text: text.toString() }
}

/** Returns the message of the refusal, or `accepted`. */
export function refusalOf(json: string | Buffer): string {
  try {
    checkUpdate(Buffer.from(json))
  } catch (error) {
    assert.ok(error instanceof PostboteError, `a bug: ${String(error)}`)
    assert.equal(error.code, 'BAD_UPDATE')
    assert.match(error.message, /^Bad update: expected .+ at byte \d+\b/)
    return error.message
  }
  return 'accepted'
}

export function refuse(json: string | Buffer): void {
  assert.notEqual(refusalOf(json), 'accepted', json.toString())
}
