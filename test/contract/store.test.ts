import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import { LevelStore, type LevelStoreOptions } from '../../src/store/level/level-store.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { openClassicLevel } from '../support/store/classic-level.ts'
import { MemoryStore } from '../support/store/memory-store.ts'
import { FaultyStore } from '../support/store/faulty-store.ts'
import type { StoreHarness } from './store.ts'
import { key, put, storeContract } from './store.ts'

type Binding = Pick<LevelStoreOptions, 'openLevel'>

const classic: Binding = { openLevel: openClassicLevel }

function levelStore(directory: string, binding: Binding = {}): LevelStore {
  return new LevelStore({ directory, clock: systemClock, lockWaitMs: 0, ...binding })
}

function levelHarness(binding: Binding = {}): StoreHarness {
  const root = mkdtempSync(join(tmpdir(), 'postbote-store-'))
  let count = 0
  return {
    create: () => levelStore(join(root, `${count++}`), binding),
    createBroken() {
      const blocker = join(root, `${count++}`)
      writeFileSync(blocker, 'not a directory')
      return { store: levelStore(blocker, binding), mend: () => rmSync(blocker) }
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
storeContract('LevelStore on classic-level', () => levelHarness(classic))

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

test('classic-level opens what leveldown has written, in tables and in a log, and the other way around', async (t) => {
  const directory = temporaryDirectory(t)
  const value = Buffer.from(Array.from({ length: 256 }, (_, at) => at))
  const expected: [string, Buffer][] = []
  const bindings = [{}, classic, {}, classic]
  for (const [life, binding] of bindings.entries()) {
    const store = levelStore(directory, binding)
    await store.open()
    const names = [`table${life}`, `log${life}`]
    for (const name of names) {
      await store.write([put(name, value)], { sync: true })
      expected.push([name, value])
      // What is written after this stays in the log.
      if (name === names[0]) await store.freeRoom({ gte: key('a'), lt: key('z') })
    }
    const entries = await store.range({ gte: key('a'), lt: key('z'), limit: 100 })
    assert.deepEqual(
      entries.map((entry) => [entry.key.toString(), entry.value]),
      expected.toSorted(([a], [b]) => (a < b ? -1 : 1)),
    )
    await store.close()
  }
})
