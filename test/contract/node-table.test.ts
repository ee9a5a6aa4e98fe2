/** The contract of the table of nodes, in memory and in PostgreSQL. */
import { test } from 'node:test'
import { PgNodes } from '../../src/store/postgres/pg-nodes.ts'
import { MemoryNodeTable } from '../support/memory-node-table.ts'
import { postgresObstacle } from '../support/postgres.ts'
import { PostgresShards } from '../support/postgres-shards.ts'
import { type NodeTableHarness, nodeTableContract } from './node-table.ts'

function memoryHarness(): NodeTableHarness {
  const table = new MemoryNodeTable()
  return {
    connect: () => table,
    add: async (node) => table.add(node),
    clear: async () => Promise.all(table.rows.map((row) => table.leave(row))).then(() => undefined),
    cleanUp: () => undefined,
  }
}

async function postgresHarness(): Promise<NodeTableHarness> {
  const { server, database } = await PostgresShards.start()
  const connected: PgNodes[] = []
  return {
    connect() {
      const table = new PgNodes(database, `boot${connected.length}`)
      connected.push(table)
      return table
    },
    async add({ name, boot, address, workers }) {
      const values = `'${name}', '${boot}', 0, '${address}', ${workers}, 'serving'`
      await server.query(`INSERT INTO node VALUES (${values})`)
    },
    async clear() {
      await server.query('DELETE FROM node')
    },
    async cleanUp() {
      for (const table of connected) table.close()
      await server.remove()
    },
  }
}

nodeTableContract('MemoryNodeTable', memoryHarness)

const obstacle = postgresObstacle()
if (obstacle === undefined) nodeTableContract('PgNodes', postgresHarness)
else test('PgNodes', { skip: obstacle }, () => undefined)
