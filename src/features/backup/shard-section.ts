/**
 * What a server sends of one shard to an export: the frames of its section (backup-frame.ts), from one snapshot. They are
 * made one at a time, when the reader wants the next one.
 */
import { crc32 } from 'node:zlib'
import type { StoreSnapshot } from '../../store/store.ts'
import { fieldsFrame, recordsFrame } from './backup-frame.ts'
import type { SectionHead } from './backup-check.ts'
import type { Shard } from '../../shard/shard.ts'

export class ShardSection {
  readonly #snapshot: StoreSnapshot
  readonly #head: SectionHead

  /** Use `begin`. */
  constructor(snapshot: StoreSnapshot, head: SectionHead) {
    this.#snapshot = snapshot
    this.#head = head
  }

  /**
   * Takes the snapshot. Close the section at its end.
   *
   * @param shards - the number of shards of the server
   * @throws PostboteError STORE_UNAVAILABLE if the shard is not served
   */
  static async begin(shard: Shard, shards: number): Promise<ShardSection> {
    const snapshot = await shard.snapshot()
    // Read afterward, so that the bound is above all ids of the snapshot.
    return new ShardSection(snapshot, { shard: shard.index, shards, ...shard.idBounds })
  }

  /** Makes the frames. Throws what the snapshot throws. */
  async *frames(): AsyncGenerator<Buffer, void, void> {
    let crc = 0
    let records = 0
    const counted = (frame: Buffer): Buffer => {
      crc = crc32(frame, crc)
      return frame
    }
    yield counted(fieldsFrame('S', this.#head))
    for (;;) {
      const entries = await this.#snapshot.next()
      if (entries.length === 0) break
      records += entries.length
      yield counted(recordsFrame(entries))
    }
    yield fieldsFrame('E', { records, crc })
  }

  close(): Promise<void> {
    return this.#snapshot.close()
  }
}
