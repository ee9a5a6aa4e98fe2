/** The response that a call of a link got. */
import assert from 'node:assert/strict'
import type { ResponseReceiver } from '../../../src/links/link/link-call.ts'
import type { ResponseHead } from '../../../src/links/link/response-head.ts'
import { until } from '../kit/until.ts'

export class ReceivedResponse implements ResponseReceiver {
  head: ResponseHead | undefined
  readonly parts: Buffer[] = []
  error: Error | undefined
  isOver = false
  /** Whether it takes more parts. */
  mayGoOn = true
  /** How often more of the request could be written. */
  drains = 0

  answered(head: ResponseHead, body: string | Buffer): void {
    assert.equal(this.head, undefined)
    this.head = head
    this.parts.push(typeof body === 'string' ? Buffer.from(body, 'latin1') : body)
    this.isOver = true
  }

  begun(head: ResponseHead): void {
    this.head = head
  }

  part(bytes: Buffer): boolean {
    this.parts.push(bytes)
    return this.mayGoOn
  }

  ended(): void {
    this.isOver = true
  }

  lost(error: Error): void {
    assert.equal(this.isOver, false)
    this.error = error
    this.isOver = true
  }

  mayWrite(): void {
    this.drains += 1
  }

  get body(): Buffer {
    return Buffer.concat(this.parts)
  }

  async over(): Promise<this> {
    await until(() => this.isOver)
    return this
  }
}
