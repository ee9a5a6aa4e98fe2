/** A client that connects through nginx, haproxy or Caddy: TLS, keep-alive, and a separate address on the loopback network. */
import assert from 'node:assert/strict'
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { Agent, request } from 'node:https'
import { gunzipSync } from 'node:zlib'
import { botsHost, pushHost, type TlsProxy } from './tls-proxy.ts'

export interface ProxiedAnswer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** The bytes as they arrived, compressed or not. */
  readonly bytes: Buffer
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts its shape by using it
  readonly body: any
}

export interface ProxiedCall {
  readonly method?: string
  readonly path: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: object | string | Buffer
  readonly signal?: AbortSignal | undefined
}

export interface NginxClientOptions {
  /** The client's address that the proxy sees, 127.x.y.z. */
  readonly address?: string
  /** The most connections; further requests wait for one of them. */
  readonly connectionsMax?: number
}

export class NginxClient {
  readonly #proxy: TlsProxy
  readonly #agent: Agent
  readonly #address: string

  constructor(proxy: TlsProxy, { address = '127.0.0.1', connectionsMax }: NginxClientOptions = {}) {
    this.#proxy = proxy
    this.#address = address
    this.#agent = new Agent({
      keepAlive: true,
      ca: proxy.certificate.cert,
      ...(connectionsMax === undefined ? {} : { maxSockets: connectionsMax }),
    })
  }

  /** Calls a method of the bot API with its parameters as a JSON body. */
  bot(token: string, method: string, parameters: object = {}, signal?: AbortSignal) {
    return this.ask(botsHost, { path: `/bot${token}/${method}`, body: parameters, signal })
  }

  /** Calls the private API. */
  push(key: string, call: ProxiedCall): Promise<ProxiedAnswer> {
    const headers = { authorization: `Bearer ${key}`, ...call.headers }
    return this.ask(pushHost, { ...call, headers })
  }

  /** Pushes one update, which must be accepted. */
  async update(key: string, botId: number, update: object): Promise<number> {
    const answer = await this.push(key, { path: `/v1/bots/${botId}/updates`, body: update })
    assert.equal(answer.status, 200, answer.bytes.toString())
    return answer.body.update_id
  }

  async ask(host: string, call: ProxiedCall): Promise<ProxiedAnswer> {
    const { body } = call
    const sent = this.open(host, call)
    const answered = answerOf(sent)
    sent.end(typeof body === 'object' && !Buffer.isBuffer(body) ? JSON.stringify(body) : body)
    return answered
  }

  /** Sends a request without its body. */
  open(host: string, call: ProxiedCall): ClientRequest {
    const { method = 'POST', path, headers = {}, signal } = call
    return request({
      host: '127.0.0.1',
      port: host === botsHost ? this.#proxy.botsPort : this.#proxy.pushPort,
      localAddress: this.#address,
      servername: host,
      agent: this.#agent,
      method,
      path,
      headers: { host, 'content-type': 'application/json', ...headers },
      ...(signal === undefined ? {} : { signal }),
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

function answerOf(sent: ClientRequest): Promise<ProxiedAnswer> {
  return new Promise((resolve, reject) => {
    sent.once('error', reject)
    sent.once('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () => {
        const bytes = Buffer.concat(chunks)
        const isPacked = response.headers['content-encoding'] === 'gzip'
        const text = (isPacked ? gunzipSync(bytes) : bytes).toString()
        const { statusCode: status = 0, headers } = response
        resolve({ status, headers, bytes, body: jsonOf(text) })
      })
    })
  })
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
