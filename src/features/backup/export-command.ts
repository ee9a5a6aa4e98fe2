/**
 * `postbote export`: copies all shards of a running server into one file, one after the other. Each shard is one moment of
 * it, after the command began. A shard whose sending breaks off, as at a reload, is asked for again from its beginning.
 */
import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import type { CommandCall } from '../../cli/commands/command-call.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { madeResult, printResult, tell } from '../../cli/output/print-result.ts'
import { ProgressBar } from '../../cli/output/progress-bar.ts'
import { bytesText } from '../../cli/remote/cells.ts'
import { privateApiOf, remoteOptions } from '../../cli/remote/private-api-of.ts'
import { CallRefusedError, type RemoteApi } from '../../cli/remote/remote-api.ts'
import { ConfigError } from '../../config/config.ts'
import { path } from '../../config/config-values.ts'
import { storedType } from '../../kit/added-type.ts'
import { sleep, waitingClock } from '../../kit/clock.ts'
import { messageOf } from '../../kit/errors.ts'
import { counted } from '../../kit/text/counted.ts'
import { needs as server } from '../server/needs.ts'
import { SectionCheck, type SectionHead } from './backup-check.ts'
import { BackupFile } from './backup-file.ts'
import { BackupError, BackupFrames } from './backup-frame.ts'
import { shardOperations } from './shard-operations.ts'

/** A shard is asked for again after this pause. Chosen: a reload or a take-over lasts a second or two. */
const exportAgainMs = 1_000
/** A shard that nobody has sent for this long is given up. Chosen: a database fails over in half a minute. */
const exportShardMsMax = 120_000

const fileArgument = {
  name: '<file>',
  kind: path,
  sentence: 'New file for the backup. It will contain secrets of bots.',
} as const

export const exportCommand: ParsedCommand = {
  kind: 'parsed',
  name: 'export',
  sentence: 'copies all bots and updates of a running server, or of its cluster, into a file',
  arguments: [fileArgument],
  options: remoteOptions,
  run: exportAll,
}

interface Exported {
  readonly file: string
  readonly began: number
  readonly shards: number
  readonly records: number
  readonly bytes: number
}

async function exportAll(call: CommandCall): Promise<void> {
  const given = call.need(fileArgument)
  if (given === '-') {
    throw new ConfigError([
      '<file>: expected a path, because standard output cannot take back a shard whose copying breaks off',
    ])
  }
  const file = resolve(given)
  const api = await privateApiOf(call)
  const began = Math.floor(waitingClock.nowMs() / 1_000)
  const backup = await BackupFile.create(file, began, await typesOf(api))
  try {
    const { shards, records } = await copyShards(api, backup)
    await backup.finish({ shards, records })
    const exported: Exported = { file, began, shards, records, bytes: backup.bytes }
    printResult(call, madeResult(exported), exportedLines)
  } finally {
    await backup.close()
  }
}

/** Returns the added types of the server, as they are stored. A server of an earlier version has none. */
async function typesOf(api: RemoteApi): Promise<readonly string[]> {
  const untilMs = waitingClock.monotonicMs() + exportShardMsMax
  for (;;) {
    try {
      const { value } = await api.call(server.listUpdateTypes, {})
      return value.types
        .filter(({ is_added: isAdded }) => isAdded)
        .map(({ type, key_paths: [keyPath] }) => storedType({ name: type, keyPath }))
    } catch (error) {
      if (!(error instanceof CallRefusedError)) throw error
      if (error.response.status === 404) return []
      if (!isTemporary(error) || waitingClock.monotonicMs() >= untilMs) throw error
    }
    await sleep(waitingClock, exportAgainMs)
  }
}

function exportedLines({ file, shards, records, bytes }: Exported): readonly string[] {
  return [
    `${counted(records, 'record')} of ${counted(shards, 'shard')} exported to ${file} (${bytesText(bytes)})`,
  ]
}

async function copyShards(
  api: RemoteApi,
  file: BackupFile,
): Promise<{ readonly shards: number; readonly records: number }> {
  const bar = new ProgressBar()
  let shards = 1
  let records = 0
  const show = (shard: number): void =>
    bar.show('exporting shards', shard, shards, ` (${bytesText(file.bytes)})`)
  try {
    for (let shard = 0; shard < shards; shard++) {
      const copy = new ShardCopy(api, file, shard, () => show(shard))
      const copied = await copy.run()
      shards = copied.head.shards
      records += copied.records
    }
    show(shards)
  } finally {
    bar.clear()
  }
  return { shards, records }
}

interface CopiedShard {
  readonly head: SectionHead
  readonly records: number
}

class ShardCopy {
  readonly #api: RemoteApi
  readonly #file: BackupFile
  readonly #shard: number
  readonly #onProgress: () => void

  constructor(api: RemoteApi, file: BackupFile, shard: number, onProgress: () => void) {
    this.#api = api
    this.#file = file
    this.#shard = shard
    this.#onProgress = onProgress
  }

  /** Copies the shard, in as many attempts as that takes. */
  async run(): Promise<CopiedShard> {
    const mark = this.#file.mark()
    const untilMs = waitingClock.monotonicMs() + exportShardMsMax
    for (let isFirst = this.#shard === 0; ; isFirst = false) {
      try {
        return await this.#copyOnce()
      } catch (error) {
        if (!(error instanceof Interruption)) throw error
        // Without a server, the command fails at once.
        if (isFirst && !error.isReached) throw error.cause
        if (waitingClock.monotonicMs() >= untilMs) throw error.cause
        tell(`shard ${this.#shard} is asked for again: ${messageOf(error.cause)}`)
      }
      await this.#file.rewind(mark)
      await sleep(waitingClock, exportAgainMs)
    }
  }

  async #copyOnce(): Promise<CopiedShard> {
    const response = await this.#response()
    const frames = new BackupFrames()
    const check = new SectionCheck()
    try {
      for await (const piece of piecesOf(response)) {
        for (const frame of frames.take(piece)) {
          check.take(frame)
          await this.#file.append(frame.bytes)
        }
        this.#onProgress()
      }
    } finally {
      response.destroy()
    }
    const { head, records } = check
    if (head === undefined || !check.isComplete || !frames.isAtEnd) {
      throw new Interruption(new Error('the response has no end'), true)
    }
    if (head.shard !== this.#shard) throw new BackupError(`shard ${this.#shard}, got ${head.shard}`)
    return { head, records }
  }

  async #response(): Promise<Readable> {
    try {
      return await this.#api.stream(shardOperations.exportShard, { shard: this.#shard })
    } catch (error) {
      const isRefused = error instanceof CallRefusedError
      if (isRefused && !isTemporary(error)) throw error
      throw new Interruption(error, isRefused)
    }
  }
}

/** The shard was not sent, or not to its end: it moves to another node, say, or the server is reloaded. */
class Interruption extends Error {
  /** Whether a server responded. */
  readonly isReached: boolean

  constructor(cause: unknown, isReached: boolean) {
    super(`the export was interrupted: ${messageOf(cause)}`, { cause })
    this.name = 'Interruption'
    this.isReached = isReached
  }
}

async function* piecesOf(response: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
  const pieces = response[Symbol.asyncIterator]()
  for (;;) {
    const next = await pieces.next().catch((error: unknown) => {
      throw new Interruption(error, true)
    })
    if (next.done === true) return
    yield next.value
  }
}

/** A shard that is set aside stays so until an operator has repaired it. */
function isTemporary({ response: { status, body } }: CallRefusedError): boolean {
  return (status === 503 || status === 429) && !body.includes('"SHARD_BROKEN"')
}
