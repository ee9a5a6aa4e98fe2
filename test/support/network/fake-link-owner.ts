/** The owner's end of links, whose responses the test provides as bytes. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { systemClock } from '../../../src/kit/clock.ts'
import { FrameWriter } from '../../../src/links/link/frame-writer.ts'
import { FrameReader } from '../../../src/links/link/frame-reader.ts'
import { fin, frameType } from '../../../src/links/link/frame.ts'
import { type RequestFields, readRequestFields } from '../../../src/links/link/request-fields.ts'

/** One request, and what its test answers. */
export class OwnedExchange {
  readonly fields: RequestFields
  readonly link: Socket
  body = Buffer.alloc(0)
  isCancelled = false
  /** Whether the client waits for no event. */
  isHurried = false
  /** Whether the other side wants no more for now. */
  isHeldBack = false
  readonly #exchange: number
  readonly #writer: FrameWriter

  constructor(link: Socket, writer: FrameWriter, exchange: number, fields: RequestFields) {
    this.link = link
    this.fields = fields
    this.#writer = writer
    this.#exchange = exchange
  }

  write(bytes: string | Buffer): void {
    this.#writer.write({ exchange: this.#exchange, type: frameType.data }, Buffer.from(bytes))
  }

  end(bytes: string | Buffer = ''): void {
    this.#writer.write({ exchange: this.#exchange, type: frameType.data | fin }, Buffer.from(bytes))
  }

  /** Sends a frame without a payload. */
  send(type: number): void {
    this.#writer.write({ exchange: this.#exchange, type })
  }
}

export interface LinkOwner {
  readonly links: Socket[]
  /** In the order in which they arrived. */
  readonly exchanges: OwnedExchange[]
  /** Takes no more links. */
  readonly leave: () => void
}

/** Listens at `path` and passes each request to `take` when all of it has arrived. */
export async function fakeLinkOwner(
  t: TestContext,
  path: string,
  take: (exchange: OwnedExchange, nth: number) => unknown,
): Promise<LinkOwner> {
  const links: Socket[] = []
  const exchanges: OwnedExchange[] = []
  const server = createServer((link) => {
    links.push(link)
    const open = new Map<number, OwnedExchange>()
    const writer = new FrameWriter(link, systemClock)
    const reader = new FrameReader(({ exchange, type }, payload) => {
      const isLast = (type & fin) !== 0
      if ((type & ~fin) === frameType.request) {
        const fields = readRequestFields(payload.toString('latin1'))
        const opened = new OwnedExchange(link, writer, exchange, fields)
        open.set(exchange, opened)
        exchanges.push(opened)
      }
      const found = open.get(exchange)
      if (found === undefined) return
      if (type === frameType.data && payload.length === 0) found.isHurried = true
      if ((type & ~fin) === frameType.data) found.body = Buffer.concat([found.body, payload])
      if (type === frameType.cancel) found.isCancelled = true
      if (type === frameType.pause) found.isHeldBack = true
      if (type === frameType.resume) found.isHeldBack = false
      if (isLast) take(found, exchanges.length)
    })
    link.on('data', (bytes: Buffer) => reader.read(bytes))
    link.on('error', () => undefined)
  })
  server.listen(path)
  await once(server, 'listening')
  const leave = (): void => void server.close()
  t.after(() => {
    leave()
    for (const link of links) link.destroy()
  })
  return { links, exchanges, leave }
}
