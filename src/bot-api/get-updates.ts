/** getUpdates: reads what a poll asks for, and sends the updates that it gets. */
import assert from 'node:assert/strict'
import { allowedUpdatesOfPoll } from '../queue/allowed-updates.ts'
import { paramsNote, typesNote } from './params-note.ts'
import type { MethodReply, MethodCall } from './method-call.ts'
import type { ServerResponse } from 'node:http'
import type { CompressPool } from '../queue/compress-pool.ts'
import { type WindowEntry, wireSlices } from '../queue/window/window.ts'
import { listHead, listTail, sendGzipped, sendList, sendResult } from '../http/reply.ts'

const offsetRange = { default: 0, min: -(2 ** 63), max: 2 ** 63 }
/** A poll returns at most this many updates, which is also the default. [ref] */
const pollLimitMax = 100
const limitRange = { default: pollLimitMax, min: 1, max: pollLimitMax }
/**
 * A poll waits at most this long; a longer timeout is clamped, because clients that ask for 60 s or more often give up
 * themselves. [ref]
 */
const pollTimeoutSMax = 50
const timeoutRange = { default: 0, min: 0, max: pollTimeoutSMax }

const ownParams = ['offset', 'limit', 'timeout', 'allowed_updates'] as const

/** protocol.md §5. Returns updates immediately, or when there are some, or an empty list at the timeout. */
export function getUpdates({
  params,
  queue,
  request,
  presence,
}: MethodCall): MethodReply | Promise<MethodReply> {
  const types = params.text('allowed_updates')
  if (types !== undefined) queue.note('allowed_updates', typesNote(types))
  const wanted = {
    offset: params.integer('offset', offsetRange),
    limit: params.integer('limit', limitRange),
    timeoutMs: params.integer('timeout', timeoutRange) * 1000,
    allowedTypes: allowedUpdatesOfPoll(types),
  }
  queue.note('getUpdates', paramsNote('getUpdates', params, ownParams))
  queue.poller.polledBy(request)
  return queue.poller.poll(wanted, presence)
}

/**
 * Sends the response of getUpdates: a head, a few slices of the window, and a tail. If the client accepts gzip and the
 * list is long, a compression thread makes the body from the same slices.
 */
export class UpdatesReply {
  readonly #pool: CompressPool
  readonly #compressBytesMin: number

  /** @param compressBytesMin - lists of more bytes than this are compressed; if absent, none is */
  constructor(pool: CompressPool, compressBytesMin = Number.POSITIVE_INFINITY) {
    this.#pool = pool
    this.#compressBytesMin = compressBytesMin
  }

  send(
    response: ServerResponse,
    entries: readonly WindowEntry[],
    acceptEncoding: string | string[] | undefined,
  ): void | Promise<void> {
    if (entries.length === 0) {
      sendResult(response, '[]')
      return undefined
    }
    const slices = wireSlices(entries)
    let listBytes = 0
    for (const slice of slices) listBytes += slice.length
    if (listBytes > this.#compressBytesMin && offersGzip(acceptEncoding)) {
      return this.#sendCompressed(response, entries, slices)
    }
    sendList(response, slices)
    return undefined
  }

  async #sendCompressed(
    response: ServerResponse,
    entries: readonly WindowEntry[],
    slices: Buffer[],
  ): Promise<void> {
    assert(slices.length > 0, 'a list that is compressed has updates')
    const page = await this.#pool.compress({
      head: listHead,
      tail: listTail,
      limit: entries.length,
      pieces: slices,
      entryBytes: Int32Array.from(entries, (entry) => entry.end - entry.start),
      textBytes: Int32Array.from(entries, (entry) => entry.textBytes),
    })
    if (page === undefined) sendList(response, slices)
    else sendGzipped(response, page.gzipped)
  }
}

function offersGzip(acceptEncoding: string | string[] | undefined): boolean {
  if (acceptEncoding === undefined) return false
  const offer = /(?:^|[\s,])(?:gzip|\*)(?:\s*;\s*q=([\d.]+))?/i.exec(String(acceptEncoding))
  return offer !== null && Number(offer[1] ?? 1) > 0
}
