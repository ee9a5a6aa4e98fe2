/**
 * Checks that a backup is whole: all sections in order, each with its number of records and its checksum, and the end of the
 * file. Feed it all frames, and ask `isComplete` at the end.
 */
import { crc32 } from 'node:zlib'
import {
  BackupError,
  type BackupFrame,
  backupFormat,
  fieldsOf,
  recordsOf,
  typedBackupFormat,
  typesOf,
} from './backup-frame.ts'

/** What the first frame of a section says. */
export interface SectionHead {
  readonly shard: number
  /** The number of shards of the source. */
  readonly shards: number
  /** Every id that the shard had assigned was below this one; 0 if the source does not know. */
  readonly below: number
  /** Queues without ids and counts begin here or above. */
  readonly from: number
}

/** Checks the section of one shard. */
export class SectionCheck {
  #head: SectionHead | undefined
  #crc = 0
  records = 0
  isComplete = false

  /** Known after the first frame. */
  get head(): SectionHead | undefined {
    return this.#head
  }

  /** @throws BackupError if the frame has no place here, or if the end does not fit what came before it */
  take(frame: BackupFrame): void {
    const isFirst = this.#head === undefined
    if (this.isComplete || isFirst !== (frame.kind === 'S')) throw misplaced(frame)
    switch (frame.kind) {
      case 'S':
        this.#head = fieldsOf(frame, ['shard', 'shards', 'below', 'from'])
        break
      case 'R':
        this.records += recordsOf(frame).length
        break
      case 'E':
        assertEnd(fieldsOf(frame, ['records', 'crc']), { records: this.records, crc: this.#crc })
        this.isComplete = true
        break
      case 'H':
      case 'Z':
        throw misplaced(frame)
    }
    this.#crc = crc32(frame.bytes, this.#crc)
  }
}

/** Checks a file, whose frames follow its magic. */
export class BackupCheck {
  #crc: number
  #began: number | undefined
  #section: SectionCheck | undefined
  /** The heads of the complete sections, by the numbers of their shards. */
  readonly sections: SectionHead[] = []
  /** The added types of the source, as they are stored. */
  types: readonly string[] = []
  records = 0
  isComplete = false

  /** @param magic - the bytes before the first frame, which the checksum covers, too */
  constructor(magic: Buffer) {
    this.#crc = crc32(magic)
  }

  /** When the export began, in seconds since 1970; known after the first frame. */
  get began(): number {
    return this.#began ?? 0
  }

  /** @throws BackupError if the frame has no place here, or if something does not fit what came before it */
  take(frame: BackupFrame): void {
    if (this.isComplete || (this.#began === undefined) !== (frame.kind === 'H')) {
      throw misplaced(frame)
    }
    if (frame.kind === 'H') this.#begin(frame)
    else if (frame.kind === 'Z') this.#end(frame)
    else this.#takePart(frame)
    this.#crc = crc32(frame.bytes, this.#crc)
  }

  #begin(frame: BackupFrame): void {
    const { format, began } = fieldsOf(frame, ['format', 'began'])
    if (format !== backupFormat && format !== typedBackupFormat) {
      throw new Error(
        `the backup has format ${format}, and this version of Postbote reads formats ${backupFormat} and ${typedBackupFormat}`,
      )
    }
    if (format === typedBackupFormat) this.types = typesOf(frame)
    this.#began = began
  }

  #takePart(frame: BackupFrame): void {
    this.#section ??= new SectionCheck()
    this.#section.take(frame)
    const { head, records, isComplete } = this.#section
    if (head === undefined || !isComplete) return
    const { length: next } = this.sections
    const { shards } = this.sections[0] ?? head
    if (head.shard !== next || head.shards !== shards) {
      throw new BackupError(`shard ${next} of ${shards}, got ${head.shard} of ${head.shards}`)
    }
    this.sections.push(head)
    this.records += records
    this.#section = undefined
  }

  #end(frame: BackupFrame): void {
    const { shards, ...end } = fieldsOf(frame, ['shards', 'records', 'crc'])
    const { length } = this.sections
    if (this.#section !== undefined || length !== shards || length !== this.sections[0]?.shards) {
      throw new BackupError(`${shards} whole shards, got ${length}`)
    }
    assertEnd(end, { records: this.records, crc: this.#crc })
    this.isComplete = true
  }
}

interface Sums {
  readonly records: number
  readonly crc: number
}

function assertEnd(expected: Sums, got: Sums): void {
  if (expected.records !== got.records) {
    throw new BackupError(`${expected.records} records, got ${got.records}`)
  }
  if (expected.crc !== got.crc) throw new BackupError('a matching CRC-32')
}

function misplaced({ kind }: BackupFrame): BackupError {
  return new BackupError(`another frame than ${kind} here`)
}
