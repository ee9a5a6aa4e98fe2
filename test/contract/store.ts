import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { snapshotStepBytes, snapshotStepEntries } from '../../src/store/limits.ts'
import type { RangeOptions, Store, StoreEntry, StoreOperation } from '../../src/store/store.ts'

export interface StoreHarness {
  /** Creates an empty store that was never opened. */
  create(): Store
  /** Creates a store whose `open` fails until `mend` is called. */
  createBroken(): { readonly store: Store; readonly mend: () => void | Promise<void> }
  cleanUp(): void | Promise<void>
}

export function key(text: string): Buffer {
  return Buffer.from(text, 'latin1')
}

export function put(name: string, value: string | Buffer): StoreOperation {
  return { type: 'put', key: key(name), value: Buffer.from(value) }
}

export function del(name: string): StoreOperation {
  return { type: 'del', key: key(name) }
}

const everything = { gte: key('\x00'), lt: key('\xff\xff'), limit: 1_000_000 }
const synced = { sync: true }

async function isRefusing(store: Store): Promise<void> {
  const refused = { code: 'STORE_UNAVAILABLE' }
  await assert.rejects(store.write([put('a', '1')], synced), refused)
  await assert.rejects(store.getMany([key('a')]), refused)
  await assert.rejects(store.range(everything), refused)
  await assert.rejects(store.range({ ...everything, limit: 0 }), refused)
  const purge = { ranges: [], mark: () => Promise.resolve(false) }
  await assert.rejects(store.purge(purge), refused)
}

async function names(store: Store, options: Partial<RangeOptions>): Promise<string> {
  const entries = await store.range({ ...everything, ...options })
  return entries.map((entry) => entry.key.toString('latin1')).join(' ')
}

function numbered(at: number): string {
  return `k${String(at).padStart(6, '0')}`
}

/** The contract of every `Store`, in every state of its life cycle. */
export function storeContract(
  name: string,
  makeHarness: () => StoreHarness | Promise<StoreHarness>,
): void {
  describe(name, () => {
    let harness: StoreHarness
    before(async () => {
      harness = await makeHarness()
    })
    after(() => harness.cleanUp())

    const opened = async (): Promise<Store> => {
      const store = harness.create()
      await store.open()
      return store
    }

    test('a store that was never opened refuses every call and can be closed', async () => {
      const store = harness.create()
      await isRefusing(store)
      await store.close()
    })

    test('a closed store refuses every call, and a second close is harmless', async () => {
      const store = await opened()
      await store.close()
      await isRefusing(store)
      await store.close()
    })

    test('a store that failed to open refuses every call until an open succeeds', async () => {
      const { store, mend } = harness.createBroken()
      await assert.rejects(store.open())
      await isRefusing(store)
      await assert.rejects(store.open())
      await store.close()
      await mend()
      await store.open()
      await store.write([put('a', '1')], synced)
      await store.close()
    })

    test('a reopened store contains what was written before and accepts writes', async () => {
      const store = await opened()
      for (let life = 0; life < 3; life++) {
        await store.write([put(`life${life}`, `${life}`)], synced)
        await store.close()
        await isRefusing(store)
        await store.open()
      }
      assert.equal((await store.range(everything)).length, 3)
      await store.close()
    })

    test('opening twice, at once or in turn, has the effect of opening once', async () => {
      const store = harness.create()
      await Promise.all([store.open(), store.open()])
      await store.open()
      await store.write([put('a', '1')], synced)
      await Promise.all([store.close(), store.close()])
      await isRefusing(store)
    })

    test('a close during an open leaves the store closed, and an open during a close leaves it open', async () => {
      const store = harness.create()
      const opening = store.open()
      await store.close()
      await opening
      await isRefusing(store)
      await store.open()
      const closing = store.close()
      await store.open()
      await closing
      assert.deepEqual(await store.range(everything), [])
      await store.close()
    })

    test('close waits for the calls in progress, and each of them succeeds', async () => {
      const store = await opened()
      const operations = Array.from({ length: 500 }, (_, at) => put(`k${at}`, 'v'.repeat(300)))
      const calls = [
        store.write(operations, synced),
        store.write([put('last', '1')], synced),
        store.getMany(operations.map((operation) => operation.key)),
        store.range(everything),
        store.range({ ...everything, limit: 1 }),
      ]
      await store.close()
      await Promise.all(calls)
      await store.open()
      assert.equal((await store.range(everything)).length, 501)
      await store.close()
    })

    test('values are returned byte for byte, including empty and binary ones', async () => {
      const store = await opened()
      const binary = Buffer.from(Array.from({ length: 256 }, (_, at) => at))
      await store.write(
        [put('\x00\xff\x00', binary), put('empty', ''), put('big', 'x'.repeat(600_000))],
        synced,
      )
      const [first, empty, big, missing] = await store.getMany(
        ['\x00\xff\x00', 'empty', 'big', 'missing'].map(key),
      )
      assert.deepEqual(first, binary)
      assert.deepEqual(empty, Buffer.alloc(0))
      assert.equal(big?.length, 600_000)
      assert.equal(missing, undefined)
      assert.deepEqual(await store.getMany([]), [])
      await store.close()
    })

    test('an empty write succeeds, and a write with an empty key is refused and applies nothing', async () => {
      const store = await opened()
      await store.write([], synced)
      await assert.rejects(store.write([put('a', '1'), put('', '2')], synced))
      assert.deepEqual(await store.range(everything), [])
      await store.close()
    })

    test('within one write the last operation on a key wins', async () => {
      const store = await opened()
      await store.write(
        [put('a', '1'), del('a'), put('b', '1'), put('b', '2'), del('c'), put('c', '3')],
        synced,
      )
      const found = await store.getMany(['a', 'b', 'c'].map(key))
      assert.deepEqual(found.map(String), ['undefined', '2', '3'])
      await store.close()
    })

    test('writes that are started together are all applied', async () => {
      const store = await opened()
      await Promise.all(
        Array.from({ length: 50 }, (_, at) =>
          store.write([put(numbered(at), `${at}`)], { sync: at % 7 === 0 }),
        ),
      )
      const entries = await store.range(everything)
      assert.deepEqual(
        entries.map((entry) => String(entry.value)),
        Array.from({ length: 50 }, (_, at) => `${at}`),
      )
      await store.close()
    })

    test('a purge leaves every entry, and the store goes on', async () => {
      const store = await opened()
      await store.write([put('u1', 'a'), put('u2', 'b'), put('u3', 'c'), put('v1', 'd')], synced)
      await store.write([del('u2'), put('u3', 'e')], synced)
      const marked: string[] = []
      const copies = await store.purge({
        ranges: [{ first: key('u0'), last: key('u9') }],
        mark: async ({ first }) => {
          marked.push(first.toString())
          await store.write([del('u2')], synced)
          return true
        },
      })
      assert.deepEqual(copies, [])
      assert.equal(await names(store, {}), 'u1 u3 v1')
      const [value] = await store.getMany([key('u3')])
      assert.equal(value?.toString(), 'e')
      assert(marked.every((first) => first >= 'u0' && first <= 'u9'))
      await store.write([put('u4', 'f')], synced)
      assert.equal(await names(store, {}), 'u1 u3 u4 v1')
      await store.close()
    })

    test('the caller may reuse its buffers after the write, and the buffers that it gets belong to it', async () => {
      const store = await opened()
      const operation = put('a', 'before')
      await store.write([operation], synced)
      if (operation.type === 'put') operation.value.fill('x')
      operation.key.fill('z')
      const [found] = await store.getMany([key('a')])
      assert.equal(String(found), 'before')
      found?.fill('y')
      const [entry] = await store.range(everything)
      assert.equal(String(entry?.value), 'before')
      entry?.value.fill('y')
      assert.equal(String((await store.getMany([key('a')]))[0]), 'before')
      await store.close()
    })

    rangeContract(opened)
  })
}

function rangeContract(opened: () => Promise<Store>): void {
  test('a range includes its first key and excludes its last, in both directions', async () => {
    const store = await opened()
    await store.write(
      ['a', 'b', 'c', 'd', 'b\x00'].map((name) => put(name, '1')),
      synced,
    )
    assert.equal(await names(store, { gte: key('b'), lt: key('d') }), 'b b\x00 c')
    assert.equal(await names(store, { gte: key('b'), lt: key('d'), reverse: true }), 'c b\x00 b')
    assert.equal(await names(store, { gte: key('b'), lt: key('bb'), reverse: true }), 'b\x00 b')
    assert.equal(await names(store, { gte: key('e'), lt: key('f') }), '')
    assert.equal(await names(store, { gte: key('d'), lt: key('b') }), '')
    assert.equal(await names(store, { gte: key('c'), lt: key('c'), reverse: true }), '')
    await store.close()
  })

  test('keys are ordered by their bytes, and a prefix comes first', async () => {
    const store = await opened()
    await store.write(
      ['\x80', '\x7f', 'b', 'ab', 'a', '\xff', '\x01'].map((name) => put(name, '1')),
      synced,
    )
    assert.equal(await names(store, {}), '\x01 a ab b \x7f \x80 \xff')
    await store.close()
  })

  test('a range ends at its limit, including the largest one and zero', async () => {
    const store = await opened()
    await store.write(
      ['a', 'b', 'c'].map((name) => put(name, '1')),
      synced,
    )
    assert.equal(await names(store, { limit: 2 }), 'a b')
    assert.equal(await names(store, { limit: 2, reverse: true }), 'c b')
    assert.equal(await names(store, { limit: Number.MAX_SAFE_INTEGER }), 'a b c')
    assert.equal(await names(store, { limit: 0 }), '')
    await store.close()
  })

  test('a range ends with the entry that reaches its number of bytes', async () => {
    const store = await opened()
    await store.write(
      ['a', 'b', 'c', 'd'].map((name) => put(name, 'x'.repeat(100))),
      synced,
    )
    assert.equal(await names(store, { valueBytesMax: 1 }), 'a')
    assert.equal(await names(store, { valueBytesMax: 200 }), 'a b')
    assert.equal(await names(store, { valueBytesMax: 201 }), 'a b c')
    assert.equal(await names(store, { valueBytesMax: 201, reverse: true }), 'd c b')
    assert.equal(await names(store, { valueBytesMax: 5_000 }), 'a b c d')
    await store.close()
  })

  test('a range of keys only has empty values', async () => {
    const store = await opened()
    await store.write(
      ['a', 'b', 'c'].map((name) => put(name, 'x'.repeat(100))),
      synced,
    )
    const entries = await store.range({ ...everything, keysOnly: true, valueBytesMax: 1 })
    assert.deepEqual(
      entries.map((entry) => [String(entry.key), entry.value.length]),
      [
        ['a', 0],
        ['b', 0],
        ['c', 0],
      ],
    )
    await store.close()
  })

  test('a long range is complete, in order, and one consistent view', async () => {
    const store = await opened()
    const operations = Array.from({ length: 5_000 }, (_, at) =>
      put(numbered(at), `${at}`.padEnd(300, '.')),
    )
    await store.write(operations, { sync: false })
    const reading = store.range(everything)
    await store.write(
      operations.map((operation) => ({ type: 'del', key: operation.key })),
      synced,
    )
    const entries = await reading
    // The view is of one moment between the call and its result.
    assert(entries.length === 5_000 || entries.length === 0, `${entries.length} entries`)
    for (const [at, entry] of entries.entries()) {
      assert.equal(String(entry.key), numbered(at))
      assert.equal(String(entry.value), `${at}`.padEnd(300, '.'))
    }
    assert.deepEqual(await store.range(everything), [])
    await store.close()
  })

  test('a snapshot has every entry of one moment, in steps, whatever is written meanwhile', async () => {
    const store = await opened()
    const value = '.'.repeat(1_000)
    const stored = Array.from({ length: 3_000 }, (_, at) => put(numbered(at), `${at}${value}`))
    await store.write(stored, { sync: false })
    const snapshot = await store.snapshot()
    const changes = stored.map((operation, at): StoreOperation => {
      return at % 2 === 0 ? { type: 'del', key: operation.key } : put(numbered(at), 'later')
    })
    const steps = [await snapshot.next()]
    await store.write([...changes, put(numbered(9_999), 'new')], synced)
    for (let step = await snapshot.next(); step.length > 0; step = await snapshot.next()) {
      steps.push(step)
    }
    assert(steps.length >= 3_000 / snapshotStepEntries)
    for (const step of steps) {
      assert(step.length <= snapshotStepEntries)
      assert(bytesOf(step.slice(0, -1)) < snapshotStepBytes)
    }
    assert.deepEqual(
      steps.flat().map((entry) => [String(entry.key), String(entry.value)]),
      stored.map((_, at) => [numbered(at), `${at}${value}`]),
    )
    await snapshot.close()
    await snapshot.close()
    await assert.rejects(snapshot.next(), { code: 'STORE_UNAVAILABLE' })
    assert.equal((await store.range(everything)).length, 1_501)
    await store.close()
  })

  test('a snapshot of an empty store ends at once', async () => {
    const store = await opened()
    const snapshot = await store.snapshot()
    assert.deepEqual(await snapshot.next(), [])
    assert.deepEqual(await snapshot.next(), [])
    await snapshot.close()
    await store.close()
  })

  test('closing a store ends its snapshots, for good', async () => {
    const store = await opened()
    await store.write([put('a', '1')], synced)
    const snapshots = [await store.snapshot(), await store.snapshot(), await store.snapshot()]
    const [read, idle, closed] = snapshots
    assert(read !== undefined && idle !== undefined && closed !== undefined)
    assert.equal((await read.next()).length, 1)
    await Promise.all([store.close(), closed.close()])
    for (const snapshot of snapshots) {
      await assert.rejects(snapshot.next(), { code: 'STORE_UNAVAILABLE' })
    }
    await assert.rejects(store.snapshot(), { code: 'STORE_UNAVAILABLE' })
    await store.open()
    for (const snapshot of snapshots) {
      await assert.rejects(snapshot.next(), { code: 'STORE_UNAVAILABLE' })
    }
    await Promise.all(snapshots.map((snapshot) => snapshot.close()))
    await store.close()
  })

  test('a snapshot can be closed while it reads', async () => {
    const store = await opened()
    await store.write([put('a', '1')], synced)
    const snapshot = await store.snapshot()
    const reading = snapshot.next().catch(() => [])
    await Promise.all([snapshot.close(), reading])
    await store.close()
  })
}

function bytesOf(entries: readonly StoreEntry[]): number {
  return entries.reduce((sum, { value }) => sum + value.length, 0)
}
