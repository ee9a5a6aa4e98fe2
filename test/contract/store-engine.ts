/** The contract of `StoreEngine`: every implementation passes it. test/contract/store.ts has the contract of its stores. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import type { OpenedStore, StoreEngine } from '../../src/store/store-engine.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'

const log = { error: assert.fail, warn: assert.fail, info: assert.fail }
const key = Buffer.from('key')

export function storeEngineContract(name: string, engine: StoreEngine): void {
  function open(directory: string): Promise<OpenedStore> {
    return engine.open({ shard: 3, directory, clock: systemClock, log })
  }

  test(`${name}: a new shard is open and empty, and an opening that was not accepted is repeated`, async (t) => {
    const directory = join(temporaryDirectory(t), 'shard')
    await engine.files?.makeNew(directory)
    for (const before of [undefined, 'value']) {
      const opened = await open(directory)
      const { store } = opened
      assert.equal(opened.hasLost, false)
      assert.equal((await store.getMany([key]))[0]?.toString(), before)
      await store.write([{ type: 'put', key, value: Buffer.from('value') }], { sync: true })
      assert.equal(await opened.probe(), true)
      await store.close()
    }
    const opened = await open(directory)
    await opened.accept()
    await opened.store.close()
  })

  const { files } = engine
  if (files === undefined) return

  test(`${name}: a shard that was made and is gone is damaged, and is not made again`, async (t) => {
    const directory = join(temporaryDirectory(t), 'shard')
    const error: unknown = await open(directory).then(
      () => assert.fail('it was opened'),
      (reason: unknown) => reason,
    )
    assert.equal(files.damageOf(error, directory)?.file, directory)
    assert.equal(await files.isFailedWrite(error), false)
  })

  test(`${name}: files that a repair fills open as a shard whose records can be read`, async (t) => {
    const directory = join(temporaryDirectory(t), 'shard')
    const created = files.create(directory, systemClock)
    await created.open()
    await created.write([{ type: 'put', key, value: Buffer.from('value') }], { sync: true })
    await created.close()
    assert.deepEqual(await files.damagedCopies(directory), [])
    assert.equal(await files.wasCompacting(directory), false)
    const records = {
      recordFault: () => undefined,
      isKeyCovered: () => false,
      mayBeKey: () => true,
    }
    for await (const part of files.read({ directory, clock: systemClock, records })) {
      assert(part.kind === 'entries')
      assert.deepEqual(
        part.entries.map(({ key: read, isDeletion }) => [read, isDeletion]),
        [[key, false]],
      )
    }
    const { store } = await open(directory)
    assert.equal((await store.getMany([key]))[0]?.toString(), 'value')
    await store.close()
  })
}
