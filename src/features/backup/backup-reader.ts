/**
 * Reads a backup (features/backup/backup-frame.ts). `open` reads all of it once and refuses one that is damaged or not whole, before
 * anything is imported; then the sections of single shards can be read, in any order.
 */
import { type FileHandle, open } from 'node:fs/promises'
import { BackupCheck, type SectionHead } from './backup-check.ts'
import {
  BackupError,
  type BackupFrame,
  BackupFrames,
  backupMagic,
  recordsOf,
} from './backup-frame.ts'
import type { StoreEntry } from '../../store/store.ts'
import { kib } from '../../kit/limits.ts'

/** `postbote import` reads the file in pieces of this size. Chosen: the size of most frames. */
const backupReadBytes = 256 * kib

/** A range of the file in bytes. */
interface Span {
  readonly from: number
  readonly to: number
}

export class BackupReader {
  readonly #file: FileHandle
  readonly #check = new BackupCheck(backupMagic)
  /** By the numbers of the shards. */
  readonly #spans: Span[] = []

  /** Use `open`. */
  constructor(file: FileHandle) {
    this.#file = file
  }

  /**
   * Opens a backup and checks all of it.
   *
   * @param onProgress - gets the number of bytes read and of all bytes
   * @throws BackupError, or the error of the file system
   */
  static async open(
    path: string,
    onProgress: (read: number, of: number) => void,
  ): Promise<BackupReader> {
    const file = await open(path, 'r')
    const reader = new BackupReader(file)
    try {
      await reader.#checkAll(onProgress)
      return reader
    } catch (error) {
      await file.close()
      throw error instanceof BackupError
        ? new Error(`${path}: ${error.message}`, { cause: error })
        : error
    }
  }

  /** When the export began, in seconds since 1970. */
  get began(): number {
    return this.#check.began
  }

  /** What the sections say about themselves, by the numbers of their shards. */
  get sections(): readonly SectionHead[] {
    return this.#check.sections
  }

  /** The added types of the source, as they are stored. */
  get types(): readonly string[] {
    return this.#check.types
  }

  get records(): number {
    return this.#check.records
  }

  /** Reads the records of a shard, some at a time, in the order of their keys. */
  async *recordsOf(shard: number): AsyncGenerator<readonly StoreEntry[], void, void> {
    const span = this.#spans[shard]
    if (span === undefined) throw new RangeError(`expected a shard of the backup, got ${shard}`)
    for await (const frame of this.#frames(span)) {
      if (frame.kind === 'R') yield recordsOf(frame)
    }
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  async #checkAll(onProgress: (read: number, of: number) => void): Promise<void> {
    const { size } = await this.#file.stat()
    const magic = Buffer.alloc(backupMagic.length)
    await this.#file.read(magic, 0, magic.length, 0)
    if (!magic.equals(backupMagic)) throw new BackupError('a file that postbote export has written')
    let at = magic.length
    let sectionFrom = at
    for await (const frame of this.#frames({ from: at, to: size })) {
      if (frame.kind === 'S') sectionFrom = at
      at += frame.bytes.length
      this.#check.take(frame)
      if (frame.kind === 'E') this.#spans.push({ from: sectionFrom, to: at })
      onProgress(at, size)
    }
    if (!this.#check.isComplete) throw new BackupError('more after its last byte')
  }

  async *#frames({ from, to }: Span): AsyncGenerator<BackupFrame, void, void> {
    const frames = new BackupFrames()
    for (let at = from; at < to; ) {
      // Frames refer to the buffer, so each piece has one of its own.
      const piece = Buffer.allocUnsafe(Math.min(backupReadBytes, to - at))
      const { bytesRead } = await this.#file.read(piece, 0, piece.length, at)
      if (bytesRead === 0) break
      at += bytesRead
      yield* frames.take(piece.subarray(0, bytesRead))
    }
    if (!frames.isAtEnd) throw new BackupError('the rest of a frame at its end')
  }
}
