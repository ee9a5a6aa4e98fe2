/**
 * Yardstick of ingest: the least that a durable push costs on Node with LevelDB. node:http, one native pass that splits and
 * checks a chunk, a Map of bots for the ids, one native pass that encodes the records, and groups that LevelDB syncs. It has
 * no tokens, filters, windows, forwarding or bounds, so no server can be that cheap.
 */
import { execFileSync } from 'node:child_process'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import leveldown from 'leveldown'
import { serveHelper } from './serve-helper.ts'

export interface FloorQuestion {
  readonly directory: string
  readonly databases: number
}

interface Rows {
  scan(bytes: Uint8Array, rows: Uint32Array, bots: Float64Array): number
  encode(
    bytes: Uint8Array,
    rows: Uint32Array,
    bots: Float64Array,
    ids: Float64Array,
    count: number,
    out: Uint8Array,
    ends: Uint32Array,
  ): void
}

const rowLength = 6
const pairsMax = 1_024
const keyBytes = 17
const recordBytesMax = 64

/** Updates that arrive while a group is written form the next one. */
class Group {
  readonly #database: ReturnType<typeof leveldown>
  #batch: ReturnType<ReturnType<typeof leveldown>['batch']> | undefined
  #written: (() => void)[] = []
  #isWriting = false

  constructor(directory: string) {
    this.#database = leveldown(directory)
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#database.open({ createIfMissing: true }, (error) => (error ? reject(error) : resolve()))
    })
  }

  put(key: Buffer, value: Buffer): void {
    this.#batch ??= this.#database.batch()
    this.#batch.put(key, value)
  }

  write(written: () => void): void {
    this.#written.push(written)
    this.#next()
  }

  #next(): void {
    if (this.#isWriting || this.#batch === undefined) return
    this.#isWriting = true
    const [batch, written] = [this.#batch, this.#written]
    this.#batch = undefined
    this.#written = []
    batch.write({ sync: true }, (error) => {
      if (error) throw error
      this.#isWriting = false
      for (const each of written) each()
      this.#next()
    })
  }
}

class Floor {
  readonly #rows: Rows
  readonly #groups: readonly Group[]
  readonly #nextIds = new Map<number, number>()
  readonly #columns = new Uint32Array(rowLength * pairsMax)
  readonly #bots = new Float64Array(pairsMax)
  readonly #ids = new Float64Array(pairsMax)
  readonly #ends = new Uint32Array(pairsMax)

  constructor(rows: Rows, groups: readonly Group[]) {
    this.#rows = rows
    this.#groups = groups
  }

  /** Answers a stream of pairs; results are sent in the order of the pairs. */
  serve(request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
    const waiting: { text: string; groups: number }[] = []
    const answer = (): void => {
      let text = ''
      while (waiting[0]?.groups === 0) text += waiting.shift()?.text ?? ''
      if (text !== '') response.write(text, 'latin1')
      if (request.readableEnded && waiting.length === 0) response.end()
    }
    let rest: Buffer | undefined
    request.on('data', (chunk: Buffer) => {
      let bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk])
      for (;;) {
        const count = this.#rows.scan(bytes, this.#columns, this.#bots)
        if (count === 0) break
        const stored = { text: this.#giveIds(count), groups: 0 }
        waiting.push(stored)
        const groups = this.#store(bytes, count)
        stored.groups = groups.size
        for (const group of groups) {
          group.write(() => {
            stored.groups -= 1
            if (stored.groups === 0) answer()
          })
        }
        bytes = bytes.subarray(this.#columns[count * rowLength - 1])
      }
      rest = bytes.length > 0 ? bytes : undefined
    })
    request.on('end', answer)
  }

  /** Returns the result lines. */
  #giveIds(count: number): string {
    let text = ''
    for (let nth = 0; nth < count; nth++) {
      if (this.#columns[nth * rowLength] === 2 ** 32 - 1) throw new Error('expected valid updates')
      const bot = this.#bots[nth] ?? 0
      const id = this.#nextIds.get(bot) ?? 1
      this.#nextIds.set(bot, id + 1)
      this.#ids[nth] = id
      text += `{"update_id":${id}}\n`
    }
    return text
  }

  /** Returns the groups that got updates. */
  #store(bytes: Buffer, count: number): ReadonlySet<Group> {
    const out = Buffer.allocUnsafe(bytes.length + count * recordBytesMax)
    this.#rows.encode(bytes, this.#columns, this.#bots, this.#ids, count, out, this.#ends)
    const used = new Set<Group>()
    let start = 0
    for (let nth = 0; nth < count; nth++) {
      const end = this.#ends[nth] ?? 0
      const group = this.#groups[(this.#bots[nth] ?? 0) % this.#groups.length]
      group?.put(out.subarray(start, start + keyBytes), out.subarray(start + keyBytes, end))
      if (group !== undefined) used.add(group)
      start = end
    }
    return used
  }
}

/** The compiler of the native addons compiles this one, too, which is no part of the server. */
function compiledRows(directory: string): Rows {
  const source = fileURLToPath(new URL('../../../bench/floor/rows_of_updates.c', import.meta.url))
  const headers = join(dirname(dirname(process.execPath)), 'include/node')
  const addon = join(directory, 'rows.node')
  const flags = ['-O2', '-std=c11', '-shared', '-fPIC', '-D_GNU_SOURCE', '-DNAPI_VERSION=8']
  execFileSync('cc', [...flags, `-I${headers}`, source, '-o', addon])
  const rows: Rows = createRequire(import.meta.url)(addon)
  return rows
}

serveHelper(async ({ directory, databases }: FloorQuestion) => {
  const groups = Array.from({ length: databases }, (_, nth) => new Group(join(directory, `${nth}`)))
  for (const group of groups) await group.open()
  const floor = new Floor(compiledRows(directory), groups)
  const server = createServer((request, response) => floor.serve(request, response))
  return new Promise<number>((resolve, reject) => {
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      // oxlint-disable-next-line no-unsafe-type-assertion -- a TCP server's address
      resolve((server.address() as AddressInfo).port)
    })
  })
})
