/**
 * A relay skips updates that no queue can store. This keeps them for the operator, each as a line of JSON in a file of the data
 * directory.
 *
 *     relay-refused/<shard>.ndjson       {"time":...,"bot_id":...,"update_id":...,"reason":...,"bytes":...,"update":"{...}"}
 *     relay-refused/<shard>.old.ndjson   the file before it, which was full
 *
 * The lines contain payloads, so only the user of the server may read them, and those of a bot are deleted when the bot is
 * removed or some of its updates are erased. Only the owner of a shard writes its files. If its next owner may be another node,
 * which could not delete them there, they are deleted when the shard leaves.
 */
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, nextTurn } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import { Mutex } from '../../kit/mutex.ts'
import { kib, mib } from '../../kit/limits.ts'
import { readIfThere } from '../../store/read-if-there.ts'
import { makePrivateDirectory, writeFileAtomically } from '../../store/write-file.ts'
import { visibleJson } from '../../kit/text/visible.ts'
import type { RefusedUpdate } from './origin.ts'

/** A bot, and the number of its shard. */
export interface RefusingBot {
  readonly botId: number
  readonly shard: number
}

/** A file of skipped updates has at most this many bytes before it becomes the old one. Chosen: hundreds of usual updates. */
export const refusedFileBytesMax = mib
/** An update in such a file is cut to this many bytes. Chosen: a few of the largest updates must not fill the file. */
export const refusedUpdateBytesMax = 64 * kib

export class RefusedUpdates {
  readonly #clock: Pick<Clock, 'nowMs' | 'soon'>
  /** Whether another node may have a shard next. */
  readonly #isShared: boolean
  readonly #directory: string
  readonly #turns = new Mutex()

  constructor(clock: Pick<Clock, 'nowMs' | 'soon'>, directory: string, isShared: boolean) {
    this.#clock = clock
    this.#isShared = isShared
    this.#directory = join(directory, 'relay-refused')
  }

  /**
   * Makes updates durable.
   *
   * @throws STORE_UNAVAILABLE
   */
  keep(of: RefusingBot, refused: readonly RefusedUpdate[]): Promise<void> {
    const time = this.#clock.nowMs() / 1_000
    return this.#turns.run(async () => {
      const lines: Buffer[] = []
      for (const { updateId, reason, raw } of refused) {
        // A line of 64 KiB that nobody can see takes 10 ms, and there may be a hundred.
        if (lines.length > 0) await nextTurn(this.#clock)
        const update = raw.toString('utf8', 0, refusedUpdateBytesMax)
        const { botId: bot_id } = of
        const fields = { time, bot_id, update_id: updateId, reason, bytes: raw.length, update }
        lines.push(Buffer.from(`${visibleJson(JSON.stringify(fields))}\n`))
      }
      try {
        await makePrivateDirectory(this.#directory)
        await this.#append(of.shard, lines)
      } catch (error) {
        throw new PostboteError('STORE_UNAVAILABLE', { cause: error })
      }
    })
  }

  /** Deletes what is kept of a bot. */
  async forget({ botId, shard }: RefusingBot): Promise<void> {
    await this.#turns.run(async () => {
      for (const path of this.#paths(shard)) {
        const text = await readIfThere(path)
        if (text === undefined) continue
        const lines = text.toString().split('\n')
        const others = lines.filter((line) => isOfAnother(line, botId))
        await writeFileAtomically(path, others.map((line) => `${line}\n`).join(''), 0o600)
      }
    })
  }

  /** Call this when a shard was opened, and when it has left. Never rejects. */
  async moved(shard: number): Promise<void> {
    if (!this.#isShared) return
    await this.#turns.run(async () => {
      for (const path of this.#paths(shard)) await rm(path, { force: true }).catch(() => undefined)
    })
  }

  /** Syncs once for all lines that the file has room for: a poll may bring a hundred. */
  async #append(shard: number, lines: readonly Buffer[]): Promise<void> {
    const [path, old] = this.#paths(shard)
    const file = await open(path, 'a', 0o600)
    let fitting = 0
    try {
      let { size } = await file.stat()
      for (const { length } of lines) {
        if (size > 0 && size + length > refusedFileBytesMax) break
        size += length
        fitting += 1
      }
      if (fitting > 0) {
        await file.appendFile(Buffer.concat(lines.slice(0, fitting)))
        await file.sync()
      }
    } finally {
      await file.close()
    }
    if (fitting === lines.length) return
    await rename(path, old)
    await this.#append(shard, lines.slice(fitting))
  }

  #paths(shard: number): readonly [string, string] {
    const path = join(this.#directory, `${shard}`)
    return [`${path}.ndjson`, `${path}.old.ndjson`]
  }
}

/** A line that a crash has cut off may be of any bot, so it counts as one of this bot. */
function isOfAnother(line: string, botId: number): boolean {
  try {
    const fields: { readonly bot_id?: unknown } = JSON.parse(line)
    return fields.bot_id !== botId
  } catch {
    return false
  }
}
