/** What the server says to setWebhook, deleteWebhook and getWebhookInfo. */
import assert from 'node:assert/strict'
import type { Answer, Server } from '../server/server.ts'

/** Asserts that a call has succeeded with this description. */
export function assertDone(answer: Answer, description: string): void {
  const expected = JSON.stringify({ ok: true, result: true, description })
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(answer.body, JSON.parse(expected))
  assert.equal(answer.headers['content-type'], 'application/json')
}

export function assertRefused(answer: Answer, status: number, description: string | RegExp): void {
  assert.equal(answer.status, status, answer.text)
  const { ok, error_code: code, description: found } = answer.body
  assert.deepEqual([ok, code], [false, status])
  if (typeof description === 'string') assert.equal(found, description)
  else assert.match(found, description)
}

/** Returns the result of getWebhookInfo. */
export async function infoOf(server: Server, token: string): Promise<Record<string, unknown>> {
  const { status, text, body } = await server.call(token, 'getWebhookInfo')
  assert.equal(status, 200, text)
  return body.result
}
