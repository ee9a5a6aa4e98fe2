/**
 * Yardstick of ingest: bare leveldown in one process. It writes the records that the server writes for the same updates
 * (each update and the state of its queue), in synced groups; the next group is prepared while one is being written.
 */
import leveldown from 'leveldown'
import { kinds } from '../../src/shard/kinds.ts'
import { encodeUpdate } from '../../src/shard/records/record.ts'
import { type Put, pushPuts } from '../push-puts.ts'
import type { IngestSample } from '../ingest-sample.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { serveHelper } from './serve-helper.ts'

export interface WriteQuestion {
  readonly directory: string
  readonly bots: number
  readonly durationMs: number
}

/** Larger groups were not faster. */
const updatesPerGroup = 1_000
const preparedUpdates = 20_000

class Writer {
  readonly #database: ReturnType<typeof leveldown>
  readonly #values: Buffer[] = []
  readonly #bots: number
  #written = 0

  constructor(question: WriteQuestion) {
    this.#database = leveldown(question.directory)
    this.#bots = question.bots
    const random = seededRandom(1)
    for (let index = 0; index < preparedUpdates; index++) {
      this.#values.push(
        encodeUpdate(kinds.update.key(0, 0), {
          typeNumber: 0,
          acceptedAtS: 1_760_000_000,
          expiresAtS: 1_760_086_400,
          orderingKey: String(index % 5_000),
          text: Buffer.from(sampleUpdate(random, index % 5_000).slice(1, -1)),
        }),
      )
    }
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#database.open({ createIfMissing: true }, (error) => (error ? reject(error) : resolve()))
    })
  }

  async run(durationMs: number): Promise<IngestSample> {
    const startMs = performance.now()
    const before = this.#written
    let group = this.#makeGroup()
    while (performance.now() < startMs + durationMs) {
      const written = this.#write(group)
      group = this.#makeGroup()
      await written
      this.#written += updatesPerGroup
    }
    return {
      operations: this.#written - before,
      seconds: (performance.now() - startMs) / 1_000,
    }
  }

  #makeGroup(): Put[] {
    const group: Put[] = []
    for (let index = 0; index < updatesPerGroup; index++) {
      const number = this.#written + index
      const queue = 1_000_000 + (number % this.#bots)
      const updateId = 5_000_000 + Math.floor(number / this.#bots)
      const value = this.#values[number % preparedUpdates] ?? Buffer.alloc(0)
      group.push(...pushPuts({ queue, updateId, value }))
    }
    return group
  }

  #write(group: Put[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#database.batch(group, { sync: true }, (error) => (error ? reject(error) : resolve()))
    })
  }
}

let writer: Writer | undefined

serveHelper(async (question: WriteQuestion) => {
  if (writer === undefined) {
    writer = new Writer(question)
    await writer.open()
  }
  return writer.run(question.durationMs)
})
