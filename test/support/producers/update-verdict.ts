/** What the server says of an update. */
import assert from 'node:assert/strict'
import { checkedRow } from '../../../src/queue/check/check-batch.ts'
import { updateTypes } from '../../../src/kit/update-types.ts'

/** Asserts that an update is accepted, and returns its number and its text. */
export function checkUpdate(json: string | Buffer): { typeNumber: number; text: Buffer } {
  const rows = checkedRow(typeof json === 'string' ? Buffer.from(json) : json)
  assert.equal(rows.refusalOf(0), undefined, json.toString())
  return { typeNumber: rows.typeOf(0), text: rows.textOf(0) }
}

/** Asserts that an update is accepted, and returns what was read of it. */
export function accept(json: string | Buffer): { type: string | undefined; text: string } {
  const { typeNumber, text } = checkUpdate(json)
  return { type: updateTypes[typeNumber], text: text.toString() }
}

/** Returns the message of the refusal, or `accepted`. */
export function refusalOf(json: string | Buffer): string {
  const refusal = checkedRow(Buffer.from(json)).refusalOf(0)
  if (refusal === undefined) return 'accepted'
  assert.equal(refusal.code, 'BAD_UPDATE')
  assert.match(refusal.message, /^Bad update: expected .+ at byte \d+\b/)
  return refusal.message
}

export function refuse(json: string | Buffer): void {
  assert.notEqual(refusalOf(json), 'accepted', json.toString())
}
