/** The owner of a bot, who has a link of the owner's page and nothing else, at either listener. */
import assert from 'node:assert/strict'
import { freshAddress } from './fresh-address.ts'
import { type Answer, type Server, send } from './server.ts'

/** Options of a link besides its ttl. */
export interface LinkOptions {
  readonly ttl?: number
  readonly can?: readonly string[]
  readonly origin?: string
}

export class BotOwner {
  readonly botId: number
  readonly linkId: string
  /** The URL of the link. */
  readonly url: URL
  readonly #server: Server

  static async of(server: Server, botId: number, options: LinkOptions = {}): Promise<BotOwner> {
    const body = { ttl: 3_600, ...options }
    const answer = await server.admin('POST', `/v1/bots/${botId}/portal`, body)
    assert.equal(answer.status, 200, answer.text)
    return new BotOwner(server, botId, answer.body)
  }

  constructor(
    server: Server,
    botId: number,
    { link_id: linkId, url }: { readonly link_id: string; readonly url: string },
  ) {
    this.#server = server
    this.botId = botId
    this.linkId = linkId
    this.url = new URL(url, server.privateUrl)
  }

  /** The secret of the link. */
  get secret(): string {
    return this.url.hash.slice(1)
  }

  /** Makes a call about its bot, at the path below `/portal/v1/bots/<id>`. */
  call(method: string, path: string, body?: object, at = this.#server.privateUrl): Promise<Answer> {
    return this.ask(method, `/portal/v1/bots/${this.botId}${path}`, body, at)
  }

  /** Makes any call. */
  ask(method: string, path: string, body?: object, at = this.#server.privateUrl): Promise<Answer> {
    return send({
      method,
      url: at + path,
      headers: { authorization: `Bearer ${this.secret}`, 'x-real-ip': freshAddress() },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  }

  revoke(): Promise<Answer> {
    return this.#server.admin('DELETE', `/v1/bots/${this.botId}/portal/${this.linkId}`)
  }
}
