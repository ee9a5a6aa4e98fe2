import assert from 'node:assert/strict'
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import fsPromises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/kit/clock.ts'
import { openRecounted } from '../../../src/shard/recovery/open-recounted.ts'
import { IdMark, idsReservedAhead, tornSkippedIds } from '../../../src/shard/id-mark.ts'
import { levelEngine } from '../../../src/store/level/level-engine.ts'
import { Shard } from '../../../src/shard/shard.ts'
import { freshState, push, queue, waited } from '../../support/store/shard-records.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

const nothing = (): void => undefined
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing }

/** Opens a shard in `<directory>/shard` as its worker does. */
async function open(t: TestContext, directory: string): Promise<{ shard: Shard; idMark: IdMark }> {
  const path = join(directory, 'shard')
  await levelEngine.files.makeNew(path)
  const idMark = await IdMark.read({ directory, shard: 3 })
  const opened = await levelEngine.open({
    shard: 3,
    directory: path,
    clock: systemClock,
    log,
    onTornEnd: () => idMark.tear(),
  })
  const shard = new Shard({
    index: 3,
    clock: systemClock,
    log,
    ...opened,
    idMark,
    onCommitted: nothing,
    onReset: nothing,
  })
  await openRecounted({ shard, opened, idMark })
  t.after(() => shard.close())
  return { shard, idMark }
}

test('every id is below a mark that is durable before the id is assigned', async (t) => {
  const directory = temporaryDirectory(t)
  const { shard, idMark } = await open(t, directory)
  shard.track(queue, freshState(5_000_000))
  await shard.commit([push(5_000_000)], waited)
  assert.equal(idMark.below, 5_000_001 + idsReservedAhead)
  const written = readFileSync(join(directory, 'ids', '3'), 'utf8')
  await shard.commit([push(5_000_001)], waited)
  assert.equal(readFileSync(join(directory, 'ids', '3'), 'utf8'), written)
  await shard.commit([push(idMark.below)], waited)
  const again = await IdMark.read({ directory, shard: 3 })
  assert.equal(again.below, idMark.below)
  assert(again.below > 7_000_000)
})

test('a mark that the disk cannot read counts as missing, and one that is no file is named', async (t) => {
  const directory = temporaryDirectory(t)
  const { shard } = await open(t, directory)
  await shard.close()
  const path = join(directory, 'ids', '3')
  const reading = t.mock.method(fsPromises, 'readFile', () => {
    return Promise.reject(Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' }))
  })
  syncBuiltinESMExports()
  const unread = await IdMark.read({ directory, shard: 3 })
  reading.mock.restore()
  syncBuiltinESMExports()
  assert.equal(unread.isKnown, false)
  rmSync(path)
  mkdirSync(path)
  await assert.rejects(IdMark.read({ directory, shard: 3 }), { name: 'ShardDamaged', file: path })
})

test('after the loss of a whole shard none of its ids is used again, in any queue', async (t) => {
  const directory = temporaryDirectory(t)
  const first = await open(t, directory)
  first.shard.track(queue, freshState(100_000_000))
  await first.shard.commit([push(100_000_000)], waited)
  await first.shard.close()
  rmSync(join(directory, 'shard'), { recursive: true })
  const lost = await IdMark.read({ directory, shard: 3 })
  await lost.distrust()
  const { shard, idMark } = await open(t, directory)
  assert.equal(idMark.isDistrusted, false)
  assert(shard.firstIdMin > 100_000_000, `new queues begin at ${shard.firstIdMin}`)
  assert.equal((await IdMark.read({ directory, shard: 3 })).from, shard.firstIdMin)
})

test('after the loss of some records every remaining queue continues above the mark', async (t) => {
  const directory = temporaryDirectory(t)
  const first = await open(t, directory)
  first.shard.track(queue, freshState(5_000_000))
  await first.shard.commit([push(5_000_000)], waited)
  await first.shard.close()
  const { below } = first.idMark
  const lost = await IdMark.read({ directory, shard: 3 })
  await lost.distrust()
  const { shard, idMark } = await open(t, directory)
  const [stored] = await shard.load([queue])
  const nextId = stored?.state?.nextId ?? 0
  assert(nextId >= below, `the next id is ${nextId}`)
  assert(idMark.below >= nextId, 'the mark is above the ids that were counted anew')
  await shard.close()
  const again = await open(t, directory)
  assert.equal((await again.shard.load([queue]))[0]?.state?.nextId, nextId)
})

test('a missing or damaged mark is created from the largest id in the shard', async (t) => {
  const directory = temporaryDirectory(t)
  const first = await open(t, directory)
  first.shard.track(queue, freshState(7_000_000))
  await first.shard.commit([push(7_000_000)], waited)
  await first.shard.close()
  const path = join(directory, 'ids', '3')
  const right = readFileSync(path, 'utf8')
  for (const text of [undefined, '', 'null', right.replace('7', '6'), right.slice(0, -20)]) {
    if (text === undefined) rmSync(path)
    else writeFileSync(path, text)
    const { shard, idMark } = await open(t, directory)
    assert.equal(idMark.below, 7_000_001 + idsReservedAhead)
    await shard.close()
  }
})

test('a queue whose records were all in a log that is lost begins above every id that it can have used', async (t) => {
  const directory = temporaryDirectory(t)
  for (const damage of ['after a clean close', 'after a crash']) {
    const { shard, idMark } = await open(t, directory)
    const nextId = Math.max(200_000_000, shard.firstIdMin)
    shard.track(queue, freshState(nextId))
    await shard.commit([push(nextId)], waited)
    await shard.close()
    const path = join(directory, 'shard')
    if (damage === 'after a crash') rmSync(join(path, 'closed'))
    const [name = ''] = readdirSync(path).filter((each) => each.endsWith('.log'))
    writeFileSync(join(path, name), Buffer.alloc(100))
    const again = await open(t, directory)
    assert.equal((await again.shard.load([queue]))[0]?.state, undefined)
    assert.equal(again.shard.firstIdMin, idMark.below, damage)
    await again.shard.close()
  }
})

test('after a torn end each queue skips ids once, in whichever start it is used first, and no record is rewritten', async (t) => {
  const directory = temporaryDirectory(t)
  const path = join(directory, 'shard')
  const [near, far] = [queue + 2, queue + 4]
  const first = await open(t, directory)
  for (const [each, id] of [
    [queue, 5_000_000],
    [near, 5_050_000],
    [far, 2_000_000_000],
  ] as const) {
    first.shard.track(each, freshState(id))
    await first.shard.commit([{ ...push(id), queue: each }], waited)
  }
  const crashed = join(directory, 'crashed')
  cpSync(path, crashed, { recursive: true })
  await first.shard.close()
  rmSync(path, { recursive: true })
  renameSync(crashed, path)
  const [name = ''] = readdirSync(path).filter((each) => each.endsWith('.log'))
  writeFileSync(join(path, name), Buffer.alloc(100), { flag: 'a' })

  const second = await open(t, directory)
  const [one, two] = await second.shard.load([queue, far])
  assert.equal(one?.state?.nextId, 5_050_001 + tornSkippedIds)
  assert.equal(two?.state?.nextId, 2_000_000_001 + tornSkippedIds)
  const { nextId } = one.state
  second.shard.track(queue, one.state)
  await second.shard.commit([push(nextId)], waited)
  await second.shard.close()

  const third = await open(t, directory)
  const states = (await third.shard.load([queue, near, far])).map(({ state }) => state?.nextId)
  assert.deepEqual(states, [nextId + 1, nextId, 2_000_000_001 + tornSkippedIds])
})
