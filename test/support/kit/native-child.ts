/**
 * A real process for the tests of shared memory and locks: `node native-child.js COMMAND ARGUMENTS...`. It prints
 * "ready" when the test has to act before it goes on.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { mapRegion } from '../../../native-bindings/shared-region.ts'
import { lockDirectory } from '../../../src/process/primary/directory-lock.ts'
import type { SharedShardTable as ShardTable } from '../../../src/process/shared-memory/shared-shard-table.ts'
import { SharedMemory } from '../../../src/process/shared-memory/shared-memory.ts'

export const nativeChildPath = fileURLToPath(import.meta.url)

const commands: Record<string, (...args: string[]) => void | Promise<void>> = {
  lock(dir) {
    lockDirectory(dir)
    waitForKill()
  },

  /** Locks the directory and starts a process that outlives this one. */
  'lock-with-child'(dir) {
    lockDirectory(dir)
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
      stdio: 'ignore',
      detached: true,
    })
    process.stdout.write(`${child.pid}\n`)
    waitForKill()
  },

  /** Prints the result of mapping a region that is larger than the disk. */
  'fill-disk'(dir, bytes) {
    try {
      mapRegion(join(dir, 'region'), Number(bytes), true)
      console.log('mapped')
    } catch (error) {
      assert(error instanceof Error && 'code' in error)
      console.log(JSON.stringify({ code: error.code, message: error.message }))
    }
  },

  /** Prints how many of 50 unreferenced mappings are left; needs --expose-gc. */
  async 'forget-mappings'(path) {
    mapRegion(path, 4096, true)
    for (let round = 0; round < 49; round++) mapRegion(path, 0, false)
    for (let round = 0; round < 5; round++) {
      globalThis.gc!()
      await new Promise((resolve) => setImmediate(resolve))
    }
    const maps = readFileSync('/proc/self/maps', 'utf8')
    console.log(maps.split('\n').filter((line) => line.includes(path)).length)
  },

  /** Adds 1 to two counters of worker 0's slot, `times` in each of `threads` threads, which start at the same moment. */
  count(path, threads, times) {
    for (let thread = 0; thread < Number(threads); thread++) {
      const order: HammerOrder = { path, times: Number(times) }
      new Worker(nativeChildPath, { workerData: order }).on('error', fail)
    }
  },

  /** Waits for shard 3 to get an owner, then serves it as that generation. */
  async serve(path) {
    const { shardTable } = SharedMemory.attach(path)
    process.stdout.write('ready\n')
    await assignment(shardTable, 3)
    const owner = shardTable.owner(3)
    shardTable.markServing(3, owner!.generation)
    console.log(JSON.stringify(owner))
  },

  /**
   * When shard 0 has an owner, tries `rounds` times to take a creation slot of each of `addresses`; prints how many it got.
   */
  async creations(path, addresses, rounds) {
    const { clients, shardTable } = SharedMemory.attach(path)
    process.stdout.write('ready\n')
    await assignment(shardTable, 0)
    let granted = 0
    for (let round = 0; round < Number(rounds); round++) {
      for (let address = 0; address < Number(addresses); address++) {
        const text = `203.0.${address >>> 8}.${address & 255}`
        if (clients.takeCreationSlot(text, 1_800_000_000_000).ok) granted++
      }
    }
    console.log(granted)
  },
}

function waitForKill(): void {
  process.stdout.write('ready\n')
  setInterval(() => {}, 1000)
}

function fail(error: Error): never {
  throw error
}

interface HammerOrder {
  readonly path: string
  readonly times: number
}

/** Starts when shard 0 gets an owner. */
async function hammer({ path, times }: HammerOrder): Promise<void> {
  const memory = SharedMemory.attach(path)
  const slot = memory.slot(0)
  process.stdout.write('ready\n')
  await assignment(memory.shardTable, 0)
  for (let round = 0; round < times; round++) {
    slot.add('updates_pushed', 1)
    slot.add('updates_confirmed', 1)
  }
}

async function assignment(shardTable: ShardTable, shard: number): Promise<void> {
  while (shardTable.owner(shard) === undefined) {
    await new Promise((resolve) => setImmediate(resolve))
  }
}

if (!isMainThread) {
  const order: HammerOrder = workerData
  await hammer(order)
} else if (process.argv[1] === nativeChildPath) {
  const [command, ...args] = process.argv.slice(2)
  await commands[command!]!(...args)
}
