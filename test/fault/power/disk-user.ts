/**
 * Uses a simulated disk as its tests require, and ends without closing anything: `disk-user.js ROOT WHAT`.
 *
 *   files    half-synced files, and names whose directory is not synced
 *   level    a LevelDB with synced batches, and prints their number
 *   faults   writes and syncs during disk faults and afterward, and prints their results
 */
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../../src/kit/clock.ts'
import { LevelStore } from '../../../src/store/level/level-store.ts'

const [, , root = '', task] = process.argv
const path = (name: string): string => join(root, name)

if (task === 'files') useFiles()
else if (task === 'level') await useLevel()
else await useFaults()
process.kill(process.pid, 'SIGKILL')

function useFiles(): void {
  const half = openSync(path('half'), 'w')
  writeSync(half, Buffer.alloc(3_000, 's'))
  fsyncSync(half)
  for (const name of ['removed', 'old', 'changed']) writeSynced(name, 'before')
  syncDirectory('')
  writeSync(half, Buffer.alloc(3_000, 'u'))
  writeSynced('made', 'made')
  unlinkSync(path('removed'))
  renameSync(path('old'), path('new'))
  const changed = openSync(path('changed'), 'r+')
  writeSync(changed, 'BEF', 0)
  mkdirSync(path('folder'))
  writeSynced('folder/inside', 'inside')
}

function writeSynced(name: string, text: string): void {
  const file = openSync(path(name), 'w')
  writeSync(file, text)
  fsyncSync(file)
  closeSync(file)
}

function syncDirectory(name: string): void {
  const directory = openSync(path(name), 'r')
  fsyncSync(directory)
  closeSync(directory)
}

async function useLevel(): Promise<void> {
  const store = await openStore()
  for (let batch = 0; batch < 50; batch++) await put(store, batch)
  process.stdout.write('50')
}

async function useFaults(): Promise<void> {
  const store = await openStore()
  const results: string[] = [await put(store, 0)]
  for (const fault of [1, 2, 0]) {
    writeFileSync(process.env['DISK_SHIM_FAULTS'] ?? '', Buffer.from([fault]))
    results.push(await put(store, fault))
    results.push(attempt(() => writeFileSync(path('file'), 'text', { flush: true })))
  }
  await store.close()
  const again = await openStore()
  results.push(await put(again, 9))
  process.stdout.write(JSON.stringify(results))
}

async function openStore(): Promise<LevelStore> {
  const store = new LevelStore({ directory: path('shard'), clock: systemClock, lockWaitMs: 0 })
  await store.open()
  return store
}

async function put(store: LevelStore, number: number): Promise<string> {
  const key = Buffer.from(String(number).padStart(4, '0'))
  try {
    await store.write([{ type: 'put', key, value: Buffer.alloc(2_000, key) }], { sync: true })
    return 'done'
  } catch (error) {
    return error instanceof Error ? (/[^:]+$/.exec(error.message)?.[0].trim() ?? '') : ''
  }
}

function attempt(what: () => void): string {
  try {
    what()
    return 'done'
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error)
  }
}
