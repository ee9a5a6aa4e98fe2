/**
 * The links of a worker to all others, one each. A call may also have a link of its own: a stream, which would delay other
 * requests, and a call to this worker's own place, where the kept link may lead to the process that leaves it.
 */
import { connect, type Socket } from 'node:net'
import type { Clock } from '../../clock.ts'
import { linkBufferBytes } from '../limits.ts'
import type { LinkCall, LinkRequest, ResponseReceiver } from './link-call.ts'
import { linkSocketPath } from './link-socket-path.ts'
import { OwnerLink } from './owner-link.ts'

/** All links read into this memory: what one has read is used before the next one reads. */
const readBuffer = Buffer.allocUnsafeSlow(linkBufferBytes)

export interface OwnerLinksOptions {
  readonly clock: Clock
  readonly runDir: string
}

export interface LinkTo {
  readonly worker: number
  /** The call gets a new link, which nothing else uses. */
  readonly isFresh: boolean
  /** The pause before a new link connects. */
  readonly delayMs?: number | undefined
}

export class OwnerLinks {
  readonly #options: OwnerLinksOptions
  /** By worker. */
  readonly #kept = new Map<number, OwnerLink>()
  /** All that may be open. */
  readonly #all = new Set<OwnerLink>()

  constructor(options: OwnerLinksOptions) {
    this.#options = options
  }

  call(to: LinkTo, request: LinkRequest, receiver: ResponseReceiver): LinkCall {
    if (!to.isFresh) return this.#keptTo(to.worker).call(request, receiver)
    const link = this.#newLink(to)
    const call = link.call(request, receiver)
    link.endWhenIdle()
    return call
  }

  /** Another process serves this place now: the kept link leads to the old one and gets no new calls. */
  forget(worker: number): void {
    this.#kept.get(worker)?.endWhenIdle()
    this.#kept.delete(worker)
  }

  close(): void {
    for (const link of this.#all) link.close()
    this.#kept.clear()
  }

  #keptTo(worker: number): OwnerLink {
    const kept = this.#kept.get(worker)
    if (kept?.isClosed === false) return kept
    const link = this.#newLink({ worker, isFresh: false })
    this.#kept.set(worker, link)
    return link
  }

  #newLink({ worker, delayMs }: LinkTo): OwnerLink {
    const { clock, runDir } = this.#options
    const path = linkSocketPath({ runDir, worker })
    const connectTo = (take: (bytes: Buffer) => void): Socket => {
      const callback = (bytes: number): boolean => {
        take(readBuffer.subarray(0, bytes))
        return true
      }
      return connect({ path, onread: { buffer: readBuffer, callback } })
    }
    const closed = (): void => void this.#all.delete(link)
    const link: OwnerLink = new OwnerLink({ clock, delayMs, connect: connectTo, closed })
    this.#all.add(link)
    return link
  }
}
