/** A shard's directory with records in tables and in a log, for tests that damage its files. */
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../../src/kit/clock.ts'
import { kinds } from '../../../src/shard/kinds.ts'
import { queueIdOf } from '../../../src/shard/records/record-keys.ts'
import { LevelStore } from '../../../src/store/level/level-store.ts'
import { encodeJson, encodeQueueState, encodeUpdate } from '../../../src/shard/records/record.ts'
import type { StoreOperation } from '../../../src/store/store.ts'

export const levelShardBot = queueIdOf(123, false)

export function updateOperation(updateId: number, text = textOf(updateId)): StoreOperation {
  const key = kinds.update.key(levelShardBot, updateId)
  const value = encodeUpdate(key, {
    typeNumber: 0,
    acceptedAtS: 1_800_000_000,
    expiresAtS: 4_000_000_000,
    orderingKey: '',
    text: Buffer.from(text),
  })
  return { type: 'put', key, value }
}

export function textOf(updateId: number): string {
  return `"message":{"n":${updateId}}`
}

/** The records, besides its updates, of a bot with updates from `from` up to `end`. */
export function botOperations(from: number, end: number): StoreOperation[] {
  const state = {
    nextId: end,
    floor: from,
    liveCount: end - from,
    liveBytes: 0,
    idempotencyDay: 0,
    idempotencyCount: 0,
  }
  const bot = { firstName: 'A', username: 'a_bot', secrets: [], createdAtMs: 5 }
  const botKey = kinds.bot.key(levelShardBot)
  const stateKey = kinds.state.key(levelShardBot)
  return [
    { type: 'put', key: botKey, value: encodeJson(botKey, bot) },
    { type: 'put', key: stateKey, value: encodeQueueState(stateKey, state) },
  ]
}

export async function writeLevel(
  directory: string,
  batches: readonly (readonly StoreOperation[])[],
): Promise<void> {
  const store = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
  await store.open()
  for (const batch of batches) await store.write(batch, { sync: batch === batches.at(-1) })
  await store.close()
}

/** Writes each list of batches with a separate store; all but the last list are in tables afterwards. */
export async function levelShard(
  directory: string,
  lives: readonly (readonly (readonly StoreOperation[])[])[],
): Promise<void> {
  for (const batches of lives) await writeLevel(directory, batches)
}

/** Returns the paths of the files with this ending, in order. */
export function filesWith(directory: string, ending: string): string[] {
  return readdirSync(directory)
    .filter((name) => name.endsWith(ending))
    .toSorted()
    .map((name) => join(directory, name))
}

export function editFile(path: string, edit: (bytes: Buffer) => Buffer | undefined): void {
  const bytes = readFileSync(path)
  writeFileSync(path, edit(bytes) ?? bytes)
}

/** Replaces `to` with a copy of `from`. */
export function replaceDirectory(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true })
  cpSync(from, to, { recursive: true })
}
