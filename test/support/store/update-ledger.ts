/**
 * A shard with some 4,800 updates of eight bots, in tables and in a log, and what was acknowledged of them: what a copy of its
 * directory serves is compared with that.
 */
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../../src/kit/clock.ts'
import { IdMark } from '../../../src/shard/id-mark.ts'
import { openRecounted } from '../../../src/shard/recovery/open-recounted.ts'
import type { Operation } from '../../../src/shard/operations.ts'
import { updateIdEnd } from '../../../src/shard/records/record-keys.ts'
import { emptyQueueState } from '../../../src/shard/records/record.ts'
import { Shard } from '../../../src/shard/shard.ts'
import { levelEngine } from '../../../src/store/level/level-engine.ts'

const bots = Array.from({ length: 8 }, (_, nth) => 7_000 + nth)
const firstId = 1_000
const updatesOfLife = 1_200
const updatesOfCommit = 10

/** What was said while a shard was opened and read. */
export interface Said {
  readonly level: 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: object
}

export interface OpenedLedger {
  readonly shard: Shard
  readonly said: Said[]
}

/** By bot, the texts of its pending updates by id. */
export type Ledger = ReadonlyMap<number, ReadonlyMap<number, string>>

/** Opens the only shard of a data directory. */
export async function openLedger(dataDir: string): Promise<OpenedLedger> {
  const said: Said[] = []
  const note =
    (level: Said['level']) =>
    (fields: object, message: string): void =>
      void said.push({ level, message, fields })
  const log = { info: note('info'), warn: note('warn'), error: note('error'), debug: note('info') }
  const directory = join(dataDir, 'shards', '0')
  const idMark = await IdMark.read({ directory: dataDir, shard: 0 })
  const opened = await levelEngine.open({
    shard: 0,
    directory,
    clock: systemClock,
    log,
    onTornEnd: () => idMark.tear(),
  })
  const shard = new Shard({
    index: 0,
    clock: systemClock,
    log,
    idMark,
    store: opened.store,
    probe: () => opened.probe(),
    onCommitted: skip,
    onReset: skip,
  })
  try {
    await openRecounted({ shard, opened, idMark })
  } catch (error) {
    await shard.close().catch(skip)
    await opened.store.close().catch(skip)
    throw error
  }
  return { shard, said }
}

/**
 * Makes a data directory with one shard, in four lives, of which each writes a log that the next one turns into a table.
 *
 * @returns what was acknowledged
 */
export async function makeLedger(dataDir: string, crashed: string): Promise<Ledger> {
  const directory = join(dataDir, 'shards', '0')
  mkdirSync(join(dataDir, 'shards'), { recursive: true })
  await levelEngine.files.makeNew(directory)
  const ledger = new Map(bots.map((bot) => [bot, new Map<number, string>()]))
  const states = new Map(bots.map((bot) => [bot, emptyQueueState(firstId)]))
  for (let life = 0; life < 4; life++) {
    const { shard } = await openLedger(dataDir)
    for (const [bot, state] of states) shard.track(bot, { ...state })
    for (let nth = 0; nth < updatesOfLife; nth += updatesOfCommit) {
      const bot = bots[(nth / updatesOfCommit) % bots.length] ?? 0
      await shard.commit(pushes(shard, bot, ledger), { waited: true })
    }
    for (const bot of bots) {
      const state = shard.stateOf(bot)
      if (state !== undefined) states.set(bot, { ...state })
    }
    if (life === 3) cpSync(dataDir, crashed, { recursive: true })
    await shard.close()
  }
  return ledger
}

function pushes(
  shard: Shard,
  queue: number,
  ledger: Map<number, Map<number, string>>,
): Operation[] {
  const from = shard.stateOf(queue)?.nextId ?? 0
  return Array.from({ length: updatesOfCommit }, (_, nth) => {
    const updateId = from + nth
    const text = `"message":{"message_id":${updateId},"chat":{"id":${queue * 31 + updateId}},"text":"${textOf(updateId)}"}`
    ledger.get(queue)?.set(updateId, text)
    return {
      kind: 'push',
      queue,
      updateId,
      typeNumber: 0,
      orderingKey: `m-${updateId % 17}`,
      acceptedAtS: 1_800_000_000,
      expiresAtS: 4_000_000_000,
      text: Buffer.from(text),
    }
  })
}

/** Text of which Snappy packs some and leaves some. */
function textOf(updateId: number): string {
  let text = `update ${updateId} `
  for (let state = updateId; text.length < 280; ) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    text += state % 3 === 0 ? ' and the same again' : state.toString(36)
  }
  return text
}

/** Returns how many updates are served that were not acknowledged so, and how many of those that were are missing. */
export async function compareLedger(
  shard: Shard,
  ledger: Ledger,
): Promise<{ missing: number; wrong: number }> {
  let missing = 0
  let wrong = 0
  await shard.load([...ledger.keys()])
  for (const [queue, texts] of ledger) {
    const all = { queue, from: 0, to: updateIdEnd, limit: 10_000, bytesMax: Infinity }
    const { updates } = await shard.readUpdates(all)
    const found = new Set<number>()
    for (const { updateId, text } of updates) {
      if (texts.get(updateId) === text.toString()) found.add(updateId)
      else wrong += 1
    }
    missing += texts.size - found.size
  }
  return { missing, wrong }
}

function skip(): void {
  // Nothing else is looked at.
}
