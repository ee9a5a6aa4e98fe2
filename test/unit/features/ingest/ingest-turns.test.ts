import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type IngestShare, IngestTurns } from '../../../../src/features/ingest/ingest-turns.ts'

/** Turns of the event loop that the test ends. */
function setUp(options: { readonly weightMax: number; readonly turnWeight: number }) {
  const ends: (() => void)[] = []
  const turns = new IngestTurns({ clock: { soon: (fire) => void ends.push(fire) }, ...options })
  const log: string[] = []
  const take = (name: string, share: IngestShare, weight: number): void => {
    const wait = share.take(weight)
    if (wait === undefined) log.push(name)
    else void wait.then(() => log.push(name))
  }
  const endTurn = async (): Promise<void> => {
    for (const end of ends.splice(0)) end()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { turns, take, log, endTurn }
}

test('a turn reads a limited amount from all streams together, and the next turn continues', async () => {
  const { turns, take, log, endTurn } = setUp({ weightMax: 1_000, turnWeight: 20 })
  const shares = Array.from({ length: 5 }, () => turns.share())
  for (const [nth, share] of shares.entries()) take(`${nth}`, share, 10)
  assert.deepEqual(log, ['0', '1'])
  await endTurn()
  assert.deepEqual(log, ['0', '1', '2', '3'])
  await endTurn()
  assert.deepEqual(log, ['0', '1', '2', '3', '4'])
  assert.equal(turns.weight, 50)
})

test('the pairs that wait for results stay within the total, except for one slice of each stream', async () => {
  const { turns, take, log, endTurn } = setUp({ weightMax: 30, turnWeight: 1_000 })
  const [first, second, third] = [turns.share(), turns.share(), turns.share()]
  for (let nth = 0; nth < 3; nth++) take(`first ${nth}`, first, 10)
  take('first 3', first, 10)
  take('second 0', second, 500)
  take('third 0', third, 10)
  await endTurn()
  assert.deepEqual(log, ['first 0', 'first 1', 'first 2', 'second 0', 'third 0'])
  take('third 1', third, 1)
  second.give(500)
  await endTurn()
  assert.equal(log.length, 5, 'there are 40 under way')
  first.give(20)
  await endTurn()
  assert.deepEqual(log.slice(5), ['first 3'])
  first.give(10)
  await endTurn()
  assert.deepEqual(log.slice(6), ['third 1'])
})

test('a stream that has used little passes those that have used much, and idle time is not saved up', async () => {
  const { turns, take, log, endTurn } = setUp({ weightMax: 1e9, turnWeight: 100 })
  const heavy = Array.from({ length: 10 }, () => turns.share())
  const trickle = turns.share()
  for (let round = 0; round < 20; round++) {
    for (const [nth, share] of heavy.entries()) take(`${nth}`, share, 100)
    take('trickle', trickle, 1)
    // Every stream has one slice waiting at a time, as in production.
    const before = log.length
    await endTurn()
    const position = log.slice(before).indexOf('trickle')
    if (round > 0)
      assert.ok(position >= 0 && position <= 1, `round ${round}: ${log.slice(before).join()}`)
    while (log.length < (round + 1) * 11) await endTurn()
  }
  const late = turns.share()
  take('early', heavy[0]!, 100)
  take('late', late, 100)
  take('old', heavy[1]!, 100)
  const before = log.length
  for (let turn = 0; turn < 8; turn++) {
    const served = log.length
    await endTurn()
    if (log.slice(served).includes('late')) take('late', late, 100)
  }
  assert.ok(log.slice(before).indexOf('old') <= 2, log.slice(before).join())
})
