/**
 * Keeps when the bots of a shard polled last, over a restart: a file of text for each shard, with a line for each queue, its id and
 * the wall time in seconds. It is written once a minute if it has changed, replaced as a whole and never synced: what is lost
 * costs a sentence its accuracy, and nothing else. A shard that moves to another node leaves it behind.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { QueueId } from '../shard/record-keys.ts'

export class LastPolls {
  readonly #directory: string
  readonly #written = new Map<number, string>()

  /** @param dataDir - of the server */
  constructor(dataDir: string) {
    this.#directory = join(dataDir, 'last-polls')
  }

  /** Returns the wall times in seconds by queue; none if there is no file, or one that cannot be read. Never rejects. */
  async read(shard: number): Promise<ReadonlyMap<QueueId, number>> {
    const text = await readFile(this.#fileOf(shard), 'latin1').catch(() => '')
    const polled = new Map<QueueId, number>()
    for (const line of text.split('\n')) {
      const [, queue, atS] = /^(\d{1,16}) (\d{1,10})$/.exec(line) ?? []
      if (queue !== undefined) polled.set(Number(queue), Number(atS))
    }
    return polled
  }

  /** Replaces what is kept of a shard. Never rejects: the next minute tries again. */
  async write(shard: number, polled: Iterable<readonly [QueueId, number]>): Promise<void> {
    const text = Array.from(polled, ([queue, atS]) => `${queue} ${atS}\n`).join('')
    if (text === (this.#written.get(shard) ?? '')) return
    const file = this.#fileOf(shard)
    try {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 })
      await writeFile(`${file}.tmp`, text, { mode: 0o600 })
      await rename(`${file}.tmp`, file)
      this.#written.set(shard, text)
    } catch {
      // The disk may be full.
    }
  }

  #fileOf(shard: number): string {
    return join(this.#directory, `${shard}`)
  }
}
