/**
 * One stream at the fake server: reads pairs of lines and answers each with a line, until an action ends it.
 *
 * The results of the pairs that came together go out together, so a cut takes with it what came before it in the same chunk.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { StringDecoder } from 'node:string_decoder'
import type { Action } from './scenario.ts'
import type { ArrivedPush, StoredPushes } from './stored-pushes.ts'

/** The server reads on only while fewer pairs wait for their results (docs/use/protocol.md 9.5). */
const pairsMax = 8_192

/** What a stream needs of its server. */
export interface StreamHost {
  readonly pushes: StoredPushes
  readonly complaints: string[]
  goDown(ms: number): void
}

/** One request for `POST /v1/updates`. */
export class FakeStream {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #server: StreamHost
  #rest = ''
  #head: string | undefined
  #lines: string[] = []
  #unanswered = 0
  #delayMs = 0
  #isOver = false
  #isIgnoring = false

  /** Takes over a request whose head has arrived. */
  constructor(request: IncomingMessage, response: ServerResponse, server: StreamHost) {
    this.#request = request
    this.#response = response
    this.#server = server
  }

  /** Begins the response, and reads pairs. Results are sent after a delay. */
  start(delayMs: number): void {
    this.#delayMs = delayMs
    this.#response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders()
    const decoder = new StringDecoder('utf8')
    this.#request.on('data', (chunk: Buffer) => this.#read(decoder.write(chunk)))
    this.#request.on('end', () => this.#finish())
    this.#response.on('drain', () => this.#request.resume())
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      if (this.#isOver || this.#isIgnoring) return
      if (this.#head === undefined) {
        this.#head = line
        continue
      }
      this.#pair(this.#head, line)
      this.#head = undefined
    }
    this.#flush()
  }

  #pair(head: string, text: string): void {
    const { bot_id: bot, idempotency_key: key }: { bot_id: number; idempotency_key?: string } =
      JSON.parse(head)
    const push = this.#server.pushes.read(bot, text, key)
    if (push === undefined) {
      this.#server.complaints.push(`a pair that no job asks for: ${text.slice(0, 200)}`)
      this.#lines.push(refusalText('BAD_UPDATE'))
      return
    }
    this.#unanswered += 1
    this.#server.pushes.seeUnanswered(this.#unanswered)
    this.#act(push.action, push)
  }

  #act(action: Action, push: ArrivedPush): void {
    switch (action.kind) {
      case 'store':
        this.#lines.push(this.#server.pushes.take(push))
        break
      case 'filter':
        this.#lines.push('{"filtered":true}')
        break
      case 'garble':
        this.#lines.push('<h1>Welcome</h1>')
        break
      case 'refuse':
        if (action.isStored === true) this.#server.pushes.take(push)
        this.#lines.push(refusalText(action.code))
        break
      case 'cut':
        if (action.isStored) this.#lines.push(this.#server.pushes.take(push))
        this.#cut(action)
        break
      case 'end':
        this.#flush()
        this.#finish()
        break
      case 'ignore':
        this.#flush()
        this.#isIgnoring = true
        break
    }
  }

  #cut({ at, downMs }: Extract<Action, { kind: 'cut' }>): void {
    this.#isOver = true
    if (downMs !== undefined) {
      this.#server.goDown(downMs)
      return
    }
    const text = `${this.#lines.join('\n')}\n`
    if (at === 'start') this.#response.destroy()
    else this.#response.write(text.slice(0, -5), () => this.#response.destroy())
  }

  #flush(): void {
    const lines = this.#lines
    if (this.#isOver || lines.length === 0) return
    this.#lines = []
    const send = (): void => {
      this.#unanswered -= lines.length
      if (!this.#response.write(`${lines.join('\n')}\n`)) this.#request.pause()
      else if (this.#request.isPaused()) this.#request.resume()
    }
    if (this.#delayMs === 0) {
      send()
      return
    }
    if (this.#unanswered >= pairsMax) this.#request.pause()
    setTimeout(send, this.#delayMs)
  }

  #finish(): void {
    if (this.#isOver || this.#isIgnoring) return
    this.#isOver = true
    if (this.#delayMs === 0) this.#response.end()
    // After the results that still wait.
    else setTimeout(() => this.#response.end(), this.#delayMs)
  }
}

/** The text of an error, as a response and as a line have it. */
export function refusalText(code: string): string {
  return JSON.stringify({ error: { code, message: `The scenario says ${code}` } })
}
