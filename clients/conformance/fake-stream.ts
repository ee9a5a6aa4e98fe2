/**
 * One stream at the fake server: reads pairs of lines and answers each with a line, until an action ends it.
 *
 * The results of the pairs that came together go out together, so a cut takes with it what came before it in the same chunk.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { StringDecoder } from 'node:string_decoder'
import type { Action, Scenario } from './scenario.ts'
import type { FakeShards } from './fake-shards.ts'
import type { ArrivedPush, StoredPushes } from './stored-pushes.ts'
import { wireFields } from './wire-fields.ts'

/** The server reads on only while fewer pairs wait for their results (docs/use/protocol.md 9.5). */
const pairsMax = 8_192

/** What a stream needs of its server. */
export interface StreamHost {
  readonly scenario: Scenario
  readonly pushes: StoredPushes
  readonly shards: FakeShards
  readonly complaints: string[]
  checkOptions(names: readonly string[], expected: readonly string[]): void
  goDown(ms: number): void
}

/** One request for `POST /v1/updates`. */
export class FakeStream {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #server: StreamHost
  readonly #hint: string | undefined
  #rest = ''
  #head: string | undefined
  #lines: string[] = []
  #unanswered = 0
  #isOver = false
  #isIgnoring = false

  /** Takes over a request whose head has arrived, and whose query names a shard or none. */
  constructor(response: ServerResponse, hint: string | undefined, server: StreamHost) {
    this.#request = response.req
    this.#response = response
    this.#hint = hint
    this.#server = server
  }

  /** Begins the response, and reads pairs. */
  start(): void {
    const { isOpenEnded, isStalled } = this.#server.scenario
    this.#server.shards.checkStream(this.#hint)
    this.#response.useChunkedEncodingByDefault = !isOpenEnded
    this.#response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders()
    if (isStalled) return
    const decoder = new StringDecoder('utf8')
    this.#request.on('data', (chunk: Buffer) => this.#read(decoder.write(chunk)))
    this.#request.on('end', () => this.#finish())
    this.#response.on('drain', () => this.#request.resume())
    this.#response.on('close', () => this.#count(-this.#unanswered))
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
    const fields: { bot_id: number; idempotency_key?: string } = JSON.parse(head)
    const { bot_id: bot, idempotency_key: key } = fields
    this.#server.checkOptions(Object.keys(fields), wireFields.pair)
    this.#server.shards.checkPair(bot, this.#hint)
    const push = this.#server.pushes.read(bot, text, key)
    if (push === undefined) {
      this.#server.complaints.push(`a pair that no job asks for: ${text.slice(0, 200)}`)
      this.#lines.push(refusalText('BAD_UPDATE'))
      return
    }
    this.#count(1)
    this.#act(push.action, push)
  }

  #count(pairs: number): void {
    this.#unanswered += pairs
    this.#server.pushes.countUnanswered(pairs)
  }

  #act(action: Action, push: ArrivedPush): void {
    switch (action.kind) {
      case 'store':
      case 'double':
        this.#lines.push(this.#server.pushes.take(push))
        break
      case 'filter':
      case 'garble':
        this.#lines.push(fixedLines[action.kind])
        break
      case 'refuse':
        if (action.isStored === true) this.#server.pushes.take(push)
        this.#lines.push(refusalText(action.code, action.message))
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

  #cut({ at, downMs, isEnded = false }: Extract<Action, { kind: 'cut' }>): void {
    this.#isOver = true
    if (downMs !== undefined) {
      this.#server.goDown(downMs)
      return
    }
    const text = at === 'start' ? '' : `${this.#lines.join('\n')}\n`
    if (isEnded) this.#response.end(text.slice(0, -5))
    else if (at === 'start') this.#response.destroy()
    else this.#response.write(text.slice(0, -5), () => this.#response.destroy())
  }

  #flush(): void {
    const lines = this.#lines
    if (this.#isOver || lines.length === 0) return
    this.#lines = []
    const send = (): void => {
      if (this.#response.closed) return
      this.#count(-lines.length)
      if (!writeBody(this.#response, `${lines.join('\n')}\n`, this.#server.scenario))
        this.#request.pause()
      else if (this.#request.isPaused()) this.#request.resume()
    }
    if (this.#server.scenario.resultDelayMs === 0) {
      send()
      return
    }
    if (this.#unanswered >= pairsMax) this.#request.pause()
    setTimeout(send, this.#server.scenario.resultDelayMs)
  }

  #finish(): void {
    if (this.#isOver || this.#isIgnoring) return
    this.#isOver = true
    if (this.#server.scenario.resultDelayMs === 0) this.#response.end()
    // After the results that still wait.
    else setTimeout(() => this.#response.end(), this.#server.scenario.resultDelayMs)
  }
}

/** The answers that are the same for each push. */
export const fixedLines = { filter: '{"filtered":true}', garble: '<h1>Welcome</h1>' } as const

/**
 * Writes a piece of a response, in chunks of one byte if it drips.
 *
 * @returns Whether the connection takes more.
 */
export function writeBody(
  response: ServerResponse,
  text: string,
  { isDripping }: { readonly isDripping: boolean },
): boolean {
  if (!isDripping) return response.write(text)
  return Array.from(Buffer.from(text), (byte) => response.write(Buffer.of(byte))).every(Boolean)
}

/** The text of an error, as a response and as a line have it. */
export function refusalText(code: string, message = `The scenario says ${code}`): string {
  return JSON.stringify({ error: { code, message } })
}
