/** What a node has in all databases of its cluster, each of which has an assignment of its own. */
import { databaseOfShard } from '../../store/database-of-shard.ts'
import type { RouteTable } from '../../process/routes.ts'
import type { ShardAssignment, ShardOpening } from '../../process/shard-assignment.ts'

export class JointAssignment implements ShardAssignment {
  readonly #parts: readonly ShardAssignment[]

  /** @param parts - by database; each knows the shards of its own database only */
  constructor(parts: readonly ShardAssignment[]) {
    this.#parts = parts
  }

  openings(): readonly ShardOpening[] {
    return this.#parts.flatMap((part) => part.openings())
  }

  has(shard: number): boolean {
    return this.#parts[databaseOfShard(shard, this.#parts.length)]?.has(shard) === true
  }

  routes(): RouteTable {
    const tables = this.#parts.flatMap((part) => part.routes() ?? [])
    return {
      boots: tables.flatMap(({ boots }) => boots),
      nodes: tables.flatMap(({ nodes }) => nodes),
      owners: tables.flatMap(({ owners }) => owners),
      servers: tables.flatMap(({ servers }) => servers),
    }
  }
}
