/**
 * LevelDB through classic-level, the successor of levelup and leveldown, as `LevelStore` uses it. It shows that the store needs
 * nothing of leveldown that classic-level does not have, so leveldown can be replaced by a file like this one.
 */
import { callbackify } from 'node:util'
import { ClassicLevel } from 'classic-level'
import type {
  LevelHandle,
  LevelIterator,
  LevelIteratorOptions,
  LevelOptions,
} from '../../../src/store/level/level-handle.ts'

type Database = ClassicLevel<Buffer, Buffer>
type Done = (error?: Error | null) => void

/** An iterator reads this many entries at a time, as leveldown does. */
const readAheadEntries = 1_000

/** Opens a database; the counterpart of `openLevel`. Rejects with LevelDB's message, which tells a lock from damage. */
export async function openClassicLevel(
  directory: string,
  options: LevelOptions,
): Promise<LevelHandle> {
  const database: Database = new ClassicLevel(directory, {
    ...options,
    keyEncoding: 'buffer',
    valueEncoding: 'buffer',
  })
  try {
    await database.open()
  } catch (error) {
    throw error instanceof Error && error.cause instanceof Error ? error.cause : error
  }
  return handleOf(database)
}

function handleOf(database: Database): LevelHandle {
  return {
    batch(operations, options, done) {
      // A copy, because the encoding adds properties, and an encoded put has getters only.
      const copies = operations.map((operation) =>
        operation.type === 'put'
          ? { type: 'put' as const, key: operation.key, value: operation.value }
          : { type: 'del' as const, key: operation.key },
      )
      settle(database.batch(copies, options), done)
    },
    getMany(keys, done) {
      callbackify(() => database.getMany([...keys]))(done)
    },
    iterator: (options) => new ClassicIterator(database, options),
    compactRange: (start, end, done) => settle(database.compactRange(start, end), done),
    close: (done) => settle(database.close(), done),
  }
}

class ClassicIterator implements LevelIterator {
  /** As of leveldown: value, key, value, key, with the next entry last. */
  cache: Buffer[] | null = []
  readonly #iterator: {
    nextv(size: number): Promise<[Buffer, Buffer | undefined][]>
    close(): Promise<void>
  }

  constructor(
    database: Database,
    { gte, lt, limit, reverse, values, highWaterMark }: LevelIteratorOptions,
  ) {
    const range = { gte, lt, limit, reverse, values, highWaterMarkBytes: highWaterMark }
    this.#iterator = database.iterator(range)
  }

  next(done: Parameters<LevelIterator['next']>[0]): void {
    // As leveldown, which a reader relies on that stops in the middle of what was read ahead.
    const [readKey, readValue] = [this.cache?.pop(), this.cache?.pop()]
    if (readKey !== undefined) {
      process.nextTick(done, null, readKey, readValue)
      return
    }
    callbackify(() => this.#iterator.nextv(readAheadEntries))((error, entries) => {
      const [first, ...others] = error ? [] : entries
      this.cache = others.toReversed().flatMap(([key, value]) => [valueOf(value), key])
      if (first === undefined) done(error)
      else done(null, first[0], valueOf(first[1]))
    })
  }

  end(done: Done): void {
    settle(this.#iterator.close(), done)
  }
}

const emptyValue = Buffer.alloc(0)

/** A value that is not read is undefined. */
function valueOf(value: Buffer | undefined): Buffer {
  return value ?? emptyValue
}

function settle(work: Promise<void>, done: Done): void {
  callbackify(() => work)(done)
}
