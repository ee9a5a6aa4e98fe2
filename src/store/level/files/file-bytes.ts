/**
 * Reads a whole file although parts of its disk cannot be read. Everything is read with `pread` into memory of our
 * own: a bad sector of a mapped file would end the process with SIGBUS, here it is an error code. Where a read
 * fails, its range is read again in halves down to one sector, and what still fails is left as zeros and listed.
 *
 * Only memory bounds the size: LevelDB's files here are 2 to 8 MiB, more only where one batch was larger.
 */

import { type FileHandle, open } from 'node:fs/promises'

const sectorBytes = 512
const chunkBytes = 128 * 1024

export interface UnreadableRange {
  readonly offset: number
  readonly length: number
  /** What the system answered, as `EIO`. */
  readonly code: string
}

export interface FileBytes {
  readonly bytes: Buffer
  readonly unreadable: readonly UnreadableRange[]
}

export interface Span {
  readonly offset: number
  readonly length: number
}

/** Fills `target` from `span.offset` on and returns how many bytes it has read. */
export type ReadAt = (file: FileHandle, target: Buffer, span: Span) => Promise<number>

export interface FileBytesOptions {
  /** Called before each read with its bytes: to bound the rate, or to stop by rejecting. */
  readonly beforeRead?: (bytes: number) => Promise<void>
  /** In place of `pread`, for tests. */
  readonly readAt?: ReadAt | undefined
}

/** @throws the system's error where the file cannot be opened, and what `beforeRead` rejects with. */
export async function readFileBytes(
  path: string,
  options: FileBytesOptions = {},
): Promise<FileBytes> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const bytes = Buffer.alloc(size)
    const reader = new Reader(file, bytes, options.readAt ?? preadAt)
    for (let offset = 0; offset < size; offset += chunkBytes) {
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

  async read(span: Span): Promise<void> {
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

  /** Sectors that follow each other are one range. */
  #list({ offset, length }: Span, error: unknown): void {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    const last = this.unreadable.at(-1)
    if (last !== undefined && last.offset + last.length === offset && last.code === code) {
      this.unreadable.splice(-1, 1, { ...last, length: last.length + length })
    } else {
      this.unreadable.push({ offset, length, code })
    }
  }
}

async function preadAt(file: FileHandle, target: Buffer, span: Span): Promise<number> {
  const { bytesRead } = await file.read(target, 0, span.length, span.offset)
  return bytesRead
}
