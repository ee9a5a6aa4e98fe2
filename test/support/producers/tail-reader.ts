/** Reads a tail (`GET /v1/bots/:id/tail`), or the events for the operator (`GET /v1/events`), as a browser does. */
import type { Server } from '../server/server.ts'
import { until } from '../kit/until.ts'

export interface TailEvent {
  readonly name: string
  readonly id?: string | undefined
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts its shape by using it
  readonly data: any
}

export class TailReader {
  readonly events: TailEvent[] = []
  status = 0
  isEnded = false
  readonly #stopping = new AbortController()

  /** Resolves when the response has begun. */
  static async open(
    server: Pick<Server, 'privateUrl' | 'key'>,
    path: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<TailReader> {
    const reader = new TailReader()
    const response = await fetch(server.privateUrl + path, {
      headers: { authorization: `Bearer ${server.key}`, ...headers },
      signal: reader.#stopping.signal,
    })
    reader.status = response.status
    void reader.#read(response).catch(() => undefined)
    return reader
  }

  /** Resolves when there are that many events. */
  atLeast(count: number): Promise<void> {
    return until(() => this.events.length >= count)
  }

  close(): void {
    this.#stopping.abort()
  }

  async #read(response: Response): Promise<void> {
    const decoder = new TextDecoder()
    let text = ''
    try {
      for await (const bytes of response.body ?? []) {
        text += decoder.decode(bytes, { stream: true })
        const parts = text.split('\n\n')
        text = parts.pop() ?? ''
        for (const part of parts) this.#take(part)
      }
    } finally {
      this.isEnded = true
    }
  }

  #take(part: string): void {
    const [, id, name, data] = /^(?:id: (\S+)\n)?event: ([\w.]+)\ndata: ([\s\S]*)$/.exec(part) ?? []
    if (name !== undefined && data !== undefined) {
      const event = { name, data: JSON.parse(data.replaceAll('\ndata: ', '\n')) }
      this.events.push(id === undefined ? event : { id, ...event })
    }
  }
}
