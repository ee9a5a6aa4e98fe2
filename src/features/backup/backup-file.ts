/**
 * Writes a backup (features/backup/backup-frame.ts) beside its final name, so that the name never leads to half of one:
 *
 *   create --> FILE.part --append, or rewind to a mark--> finish: synced, then renamed to FILE
 *     any failure, SIGINT or SIGTERM: FILE.part is removed
 *
 * Only its owner can read the file, because it has the secrets of all bots.
 */
import assert from 'node:assert/strict'
import { unlinkSync } from 'node:fs'
import { type FileHandle, open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import { ConfigError } from '../../config/config.ts'
import { backupFormat, backupMagic, fieldsFrame, typedBackupFormat } from './backup-frame.ts'
import { exists } from '../../store/read-if-there.ts'
import { syncDirectory } from '../../store/write-file.ts'

/** A place in the file. */
export interface BackupMark {
  readonly bytes: number
  readonly crc: number
}

const endSignals = ['SIGINT', 'SIGTERM'] as const

export class BackupFile {
  readonly #path: string
  readonly #file: FileHandle
  #bytes = 0
  #crc = 0
  #isClosed = false
  readonly #onSignal = (): void => {
    unlinkSync(this.#part)
    process.exit(1)
  }

  /** Use `create`. */
  constructor(path: string, file: FileHandle) {
    this.#path = path
    this.#file = file
    for (const signal of endSignals) process.once(signal, this.#onSignal)
  }

  /**
   * Creates the file and writes its beginning.
   *
   * @param began - when the export began, in seconds since 1970
   * @param types - the added types of the server, as they are stored
   * @throws ConfigError if the file exists, or its unfinished form
   */
  static async create(
    path: string,
    began: number,
    types: readonly string[] = [],
  ): Promise<BackupFile> {
    if (await exists(path)) throw new ConfigError([`<file>: expected a new file, got ${path}`])
    const file = await openNew(`${path}.part`)
    const backup = new BackupFile(path, file)
    try {
      // The umask narrows the mode that `open` gets, and nothing else may widen it.
      await file.chmod(0o600)
      await backup.append(backupMagic)
      const head = { format: backupFormat, began }
      const typedHead = { ...head, format: typedBackupFormat, types }
      await backup.append(fieldsFrame('H', types.length === 0 ? head : typedHead))
      return backup
    } catch (error) {
      await backup.close()
      throw error
    }
  }

  /** The size so far. */
  get bytes(): number {
    return this.#bytes
  }

  async append(bytes: Buffer): Promise<void> {
    assert(!this.#isClosed, 'a backup that has its end gets nothing more')
    for (let at = 0; at < bytes.length; ) {
      const { bytesWritten } = await this.#file.write(
        bytes,
        at,
        bytes.length - at,
        this.#bytes + at,
      )
      at += bytesWritten
    }
    this.#bytes += bytes.length
    this.#crc = crc32(bytes, this.#crc)
  }

  mark(): BackupMark {
    return { bytes: this.#bytes, crc: this.#crc }
  }

  /** Drops what was written after the mark. */
  async rewind({ bytes, crc }: BackupMark): Promise<void> {
    assert(bytes <= this.#bytes, 'a mark is behind what was written')
    await this.#file.truncate(bytes)
    this.#bytes = bytes
    this.#crc = crc
  }

  /** Writes the end, and gives the file its name. */
  async finish(sums: { readonly shards: number; readonly records: number }): Promise<void> {
    await this.append(fieldsFrame('Z', { ...sums, crc: this.#crc }))
    await this.#file.sync()
    await this.#file.close()
    await rename(this.#part, this.#path)
    this.#close()
    await syncDirectory(dirname(this.#path))
  }

  /** Removes an unfinished file. Has no effect after `finish`. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#close()
    await this.#file.close().catch(() => undefined)
    unlinkSync(this.#part)
  }

  get #part(): string {
    return `${this.#path}.part`
  }

  #close(): void {
    this.#isClosed = true
    for (const signal of endSignals) process.off(signal, this.#onSignal)
  }
}

async function openNew(part: string): Promise<FileHandle> {
  try {
    return await open(part, 'wx', 0o600)
  } catch (error) {
    if (Object(error).code !== 'EEXIST') throw error
    throw new ConfigError([
      `<file>: ${part} exists: another export is writing it, or one was killed; in that case remove it`,
    ])
  }
}
