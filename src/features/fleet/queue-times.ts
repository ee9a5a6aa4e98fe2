/**
 * Keeps times of the queues of a shard over a restart, such as when bots polled last: a file of text for each shard, with a line for
 * each queue, its id and the wall time in seconds. It is replaced as a whole and never synced: what is lost costs a sentence its
 * accuracy, or an event is reported again, and nothing else. A shard that moves to another node leaves it behind.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { QueueId } from '../../shard/records/record-keys.ts'

/** What is kept, each in a directory of this name: the last polls, and troubles of bots that were reported and are not over. */
export type QueueTimesKind = 'last-polls' | 'reported-degraded' | 'reported-unpolled'

export class QueueTimes {
  readonly #dataDir: string
  readonly #written = new Map<string, string>()

  /** @param dataDir - of the server */
  constructor(dataDir: string) {
    this.#dataDir = dataDir
  }

  /** Returns the wall times in seconds by queue; none if there is no file, or one that cannot be read. Never rejects. */
  async read(kind: QueueTimesKind, shard: number): Promise<ReadonlyMap<QueueId, number>> {
    const file = this.#fileOf(kind, shard)
    const text = await readFile(file, 'latin1').catch(() => '')
    this.#written.set(file, text)
    const times = new Map<QueueId, number>()
    for (const line of text.split('\n')) {
      const [, queue, atS] = /^(\d{1,16}) (\d{1,10})$/.exec(line) ?? []
      if (queue !== undefined) times.set(Number(queue), Number(atS))
    }
    return times
  }

  /** Replaces what is kept of a shard, if it has changed. Never rejects: the next time tries again. */
  async write(
    kind: QueueTimesKind,
    shard: number,
    times: Iterable<readonly [QueueId, number]>,
  ): Promise<void> {
    const text = Array.from(times, ([queue, atS]) => `${queue} ${atS}\n`).join('')
    const file = this.#fileOf(kind, shard)
    if (text === (this.#written.get(file) ?? '')) return
    try {
      await mkdir(join(this.#dataDir, kind), { recursive: true, mode: 0o700 })
      await writeFile(`${file}.tmp`, text, { mode: 0o600 })
      await rename(`${file}.tmp`, file)
      this.#written.set(file, text)
    } catch {
      // The disk may be full.
    }
  }

  #fileOf(kind: QueueTimesKind, shard: number): string {
    return join(this.#dataDir, kind, `${shard}`)
  }
}
