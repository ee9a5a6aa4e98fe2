import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/clock.ts'
import { LevelStore } from '../../src/store/level/level-store.ts'
import { MemoryStore } from '../support/store/memory-store.ts'
import { FaultyStore } from '../support/store/faulty-store.ts'
import type { StoreHarness } from './store.ts'
import { storeContract } from './store.ts'

function levelStore(directory: string): LevelStore {
  return new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
}

function levelHarness(): StoreHarness {
  const root = mkdtempSync(join(tmpdir(), 'postbote-store-'))
  let count = 0
  return {
    create: () => levelStore(join(root, `${count++}`)),
    createBroken() {
      const blocker = join(root, `${count++}`)
      writeFileSync(blocker, 'not a directory')
      return { store: levelStore(blocker), mend: () => rmSync(blocker) }
    },
    cleanUp: () => rmSync(root, { recursive: true }),
  }
}

function brokenMemory(): { readonly store: MemoryStore; readonly mend: () => void } {
  let failure: Error | undefined = new Error('cannot open')
  return {
    store: new MemoryStore({ openFailure: () => failure }),
    mend: () => {
      failure = undefined
    },
  }
}

storeContract('LevelStore', levelHarness)

storeContract('MemoryStore', () => ({
  create: () => new MemoryStore(),
  createBroken: brokenMemory,
  cleanUp: () => undefined,
}))

storeContract('FaultyStore without faults', () => ({
  create: () => new FaultyStore(new MemoryStore()),
  createBroken() {
    const { store, mend } = brokenMemory()
    return { store: new FaultyStore(store), mend }
  },
  cleanUp: () => undefined,
}))
