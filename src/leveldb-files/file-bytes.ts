/**
 * Reads a complete file even if parts of its disk cannot be read. Everything is read with `pread` into allocated
 * memory: in a mapped file, a bad sector would end the process with SIGBUS; here it is an error code. If a read
 * fails, its range is split in halves and read again, down to one sector. Sectors that still fail are filled with
 * zeros and listed.
 *
 * Only memory limits the size of a file. LevelDB's files have 2 to 8 MiB here; they are larger only if a single batch
 * was larger.
 */
import { type FileHandle, open } from 'node:fs/promises'
import type { FileSpan, ReadAt } from './files-part.ts'

/** The smallest unit that a disk reads. */
const sectorBytes = 512
const chunkBytes = 128 * 1024

/** A part of a file that could not be read, in bytes. */
export interface UnreadableRange {
  readonly offset: number
  readonly length: number
  /** The error code of the system, such as `EIO`. */
  readonly code: string
}

/** The contents of a file. The unreadable ranges are zeros. */
export interface FileBytes {
  readonly bytes: Buffer
  readonly unreadable: readonly UnreadableRange[]
}

/** Options of `readFileBytes`. */
export interface FileBytesOptions {
  /**
   * Called before each read with its length in bytes, at most 128 KiB. Limits the rate, or stops the reading by
   * rejecting.
   */
  readonly beforeRead?: ((bytes: number) => Promise<void>) | undefined
  /** The offset of the first byte that is read; all bytes before it are zeros. The whole file is read by default. */
  readonly from?: number | undefined
  /** Replaces `pread` in tests. */
  readonly readAt?: ReadAt | undefined
}

/**
 * Reads a complete file.
 *
 * @throws the error of the system if the file cannot be opened, and any error that `beforeRead` rejects with.
 */
export async function readFileBytes(
  path: string,
  options: FileBytesOptions = {},
): Promise<FileBytes> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const bytes = Buffer.alloc(size)
    const reader = new Reader(file, bytes, options.readAt ?? preadAt)
    for (let offset = options.from ?? 0; offset < size; offset += chunkBytes) {
      const length = Math.min(chunkBytes, size - offset)
      await options.beforeRead?.(length)
      await reader.read({ offset, length })
    }
    return reader
  } finally {
    await file.close()
  }
}

class Reader implements FileBytes {
  readonly bytes: Buffer
  readonly unreadable: UnreadableRange[] = []
  readonly #file: FileHandle
  readonly #readAt: ReadAt

  constructor(file: FileHandle, bytes: Buffer, readAt: ReadAt) {
    this.#file = file
    this.bytes = bytes
    this.#readAt = readAt
  }

  async read(span: FileSpan): Promise<void> {
    const { offset, length } = span
    try {
      await this.#readAt(this.#file, this.bytes.subarray(offset, offset + length), span)
    } catch (error) {
      if (length > sectorBytes) {
        const half = Math.ceil(length / 2 / sectorBytes) * sectorBytes
        await this.read({ offset, length: half })
        await this.read({ offset: offset + half, length: length - half })
      } else {
        this.bytes.fill(0, offset, offset + length)
        this.#list(span, error)
      }
    }
  }

  /** Merges consecutive sectors into one range. */
  #list({ offset, length }: FileSpan, error: unknown): void {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    const last = this.unreadable.at(-1)
    if (last !== undefined && last.offset + last.length === offset && last.code === code) {
      this.unreadable.splice(-1, 1, { ...last, length: last.length + length })
    } else {
      this.unreadable.push({ offset, length, code })
    }
  }
}

async function preadAt(file: FileHandle, target: Buffer, span: FileSpan): Promise<number> {
  const { bytesRead } = await file.read(target, 0, span.length, span.offset)
  return bytesRead
}
