/**
 * The answer of getUpdates: a head, a few slices of the window, a tail; or, where the client offers gzip and the
 * list is long, what a compression thread makes of the same slices.
 */
import type { ServerResponse } from 'node:http'
import type { CompressPool } from '../queue/compress.ts'
import { type WindowEntry, wireSlices } from '../queue/window.ts'
import { listHead, listTail, sendEmptyList, sendGzipped, sendSlices } from './reply.ts'

export interface UpdatesReplyOptions {
  /** Lists longer than this are compressed; undefined: none. */
  readonly compressBytesMin: number | undefined
  readonly pool: CompressPool
}

export class UpdatesReply {
  readonly #options: UpdatesReplyOptions

  constructor(options: UpdatesReplyOptions) {
    this.#options = options
  }

  send(
    response: ServerResponse,
    answer: {
      readonly entries: readonly WindowEntry[]
      readonly acceptEncoding: string | string[] | undefined
    },
  ): void | Promise<void> {
    const { entries, acceptEncoding } = answer
    if (entries.length === 0) {
      sendEmptyList(response)
      return undefined
    }
    const slices = wireSlices(entries)
    let listBytes = 0
    for (const slice of slices) listBytes += slice.length
    const { compressBytesMin } = this.#options
    if (
      compressBytesMin !== undefined &&
      listBytes > compressBytesMin &&
      offersGzip(acceptEncoding)
    ) {
      return this.#sendCompressed(response, entries, slices, listBytes)
    }
    sendPlain(response, slices, listBytes)
    return undefined
  }
}

function sendPlain(response: ServerResponse, slices: Buffer[], listBytes: number): void {
  slices.unshift(listHead)
  slices.push(listTail)
  sendSlices(response, slices, listHead.length + listBytes + listTail.length)
}

function offersGzip(acceptEncoding: string | string[] | undefined): boolean {
  if (acceptEncoding === undefined) return false
  const offer = /(?:^|[\s,])(?:gzip|\*)(?:\s*;\s*q=([\d.]+))?/i.exec(String(acceptEncoding))
  return offer !== null && Number(offer[1] ?? 1) > 0
}
