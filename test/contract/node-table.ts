/** The contract of the table in which nodes beat. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { NodeRow, NodeTable } from '../../src/store/node-table.ts'

export interface NodeTableHarness {
  /** Returns the same rows to each caller, as different processes see them. */
  connect(): NodeTable
  /** Adds the row of a node, whatever other rows there are. */
  add(node: Omit<NodeRow, 'beat' | 'state'>): Promise<void>
  clear(): Promise<void>
  cleanUp(): void | Promise<void>
}

function node(name: string, boot = `${name}-boot`): Omit<NodeRow, 'beat' | 'state'> {
  return { name, boot, address: '10.0.0.5:8450', workers: 2 }
}

export function nodeTableContract(
  title: string,
  makeHarness: () => NodeTableHarness | Promise<NodeTableHarness>,
): void {
  describe(title, () => {
    let harness: NodeTableHarness
    before(async () => {
      harness = await makeHarness()
    })
    after(() => harness.cleanUp())

    const tables = async (): Promise<[NodeTable, NodeTable]> => {
      await harness.clear()
      return [harness.connect(), harness.connect()]
    }

    test('a node that joins has a row, which others read as it was written', async () => {
      const [a, b] = await tables()
      assert.deepEqual(await a.nodes(), [])
      assert.equal(await a.joinAlone(node('a')), true)
      assert.deepEqual(await b.nodes(), [{ ...node('a'), beat: '0', state: 'serving' }])
    })

    test('a node cannot join beside another one, not even under the same name', async () => {
      const [a, b] = await tables()
      await a.joinAlone(node('a'))
      for (const other of [node('b'), node('a', 'later'), node('a')]) {
        assert.equal(await b.joinAlone(other), false)
      }
      assert.equal((await a.nodes()).length, 1)
    })

    test('of nodes that join at the same time at most one does', async () => {
      for (let round = 0; round < 10; round++) {
        const both = await tables()
        const joined = await Promise.all(both.map((table, nth) => table.joinAlone(node(`${nth}`))))
        const count = joined.filter(Boolean).length
        assert(count <= 1)
        assert.equal((await both[0].nodes()).length, count)
      }
    })

    test('a heartbeat adds one to the beat of its own row, and reads the rows from before it', async () => {
      const [a] = await tables()
      await harness.add(node('a'))
      await harness.add(node('b'))
      for (let beat = 0; beat < 12; beat++) {
        const { isMember, nodes } = await a.beat(node('a'))
        assert.equal(isMember, true)
        const beats = Object.fromEntries(nodes.map((row) => [row.name, row.beat]))
        assert.deepEqual(beats, { a: `${beat}`, b: '0' })
      }
    })

    test('a row is evicted only if its beat is still the same', async () => {
      const [a, b] = await tables()
      await harness.add(node('a'))
      await harness.add(node('b'))
      const [read] = await b.nodes()
      assert(read !== undefined)
      await a.beat(read)
      await b.evict(read)
      await b.evict({ ...read, beat: '1', boot: 'another' })
      await b.evict({ ...read, beat: '1', name: 'another' })
      assert.equal((await a.nodes()).length, 2)
      await b.evict({ ...read, beat: '1' })
      assert.deepEqual(
        (await a.nodes()).map(({ name }) => name),
        ['a', 'b'].filter((name) => name !== read.name),
      )
    })

    test('a boot that was evicted never becomes a member again', async () => {
      const [a, b] = await tables()
      await harness.add(node('a'))
      const [row] = await b.nodes()
      assert(row !== undefined)
      await b.evict(row)
      assert.deepEqual(await a.beat(node('a')), { isMember: false, nodes: [] })
      await harness.add(node('a', 'next'))
      const { isMember, nodes } = await a.beat(node('a'))
      assert.equal(isMember, false)
      assert.deepEqual(
        nodes.map(({ boot, beat }) => [boot, beat]),
        [['next', '0']],
      )
      assert.equal((await b.nodes())[0]?.beat, '0')
    })

    test('a node that leaves deletes its own row, and not that of its next life', async () => {
      const [a, b] = await tables()
      await harness.add(node('a', 'next'))
      await a.leave(node('a'))
      assert.equal((await b.nodes()).length, 1)
      await a.leave(node('a', 'next'))
      await a.leave(node('a', 'next'))
      assert.deepEqual(await b.nodes(), [])
    })
  })
}
