/** Somebody who has a key of the private API of a server, but not the admin key. */
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { type Answer, type Server, send } from './server.ts'

export class KeyUser {
  readonly privateUrl: string
  readonly key: string
  readonly keyId: string
  readonly #server: Server

  constructor(server: Server, { key, keyId }: { readonly key: string; readonly keyId: string }) {
    this.#server = server
    this.privateUrl = server.privateUrl
    this.key = key
    this.keyId = keyId
  }

  /** Makes a key. */
  static async make(server: Server, wanted: object): Promise<KeyUser> {
    const { status, text, body } = await server.admin('POST', '/v1/keys', wanted)
    assert.equal(status, 200, text)
    assert.equal(body.unreached_workers, undefined, text)
    return new KeyUser(server, { key: body.key, keyId: body.key_id })
  }

  /** The same key at another server, or with another secret. */
  at(server: Server, key = this.key): KeyUser {
    return new KeyUser(server, { key, keyId: this.keyId })
  }

  call(method: string, path: string, body?: object | string): Promise<Answer> {
    return this.#server.admin(method, path, body, { authorization: `Bearer ${this.key}` })
  }

  /** Pushes one update, and returns the status, or the code of the error. */
  async push(botId: number): Promise<string> {
    const path = `/v1/bots/${botId}/updates`
    const { status, body } = await this.call('POST', path, { message: { text: 'hello' } })
    return body.error?.code ?? String(status)
  }

  /** Pushes one update over a connection that stays open, and returns the status. */
  pusher(botId: number): { push(): Promise<number>; close(): void } {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    return {
      push: async () => {
        const answer = await send({
          method: 'POST',
          url: `${this.privateUrl}/v1/bots/${botId}/updates`,
          headers: { authorization: `Bearer ${this.key}` },
          body: '{"message":{"text":"hello"}}',
          agent,
        })
        return answer.status
      },
      close: () => agent.destroy(),
    }
  }
}
