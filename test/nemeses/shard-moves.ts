/**
 * Counts which shards change their owners, as producers at the nodes see it. Without that, nobody knows whether a trial has
 * tried anything: a node that registers bots chooses ids of its own shards, so none of them may move when another node leaves.
 */
import { Mutex } from '../../src/kit/mutex.ts'
import type { TestCluster } from '../support/server/cluster.ts'
import { wait } from '../support/server/database.ts'

/** Each look is a connection to the database. A shard stays longer with an owner. */
const periodMs = 150

/** A move is to the node of one producer, from that of another one, and between two others for all the rest. */
export interface MoveCounts {
  readonly toOwn: number
  readonly fromOwn: number
  readonly others: number
}

export class ShardMoves {
  readonly #cluster: Pick<TestCluster, 'owners'>
  /** Names of the nodes at which there are producers. */
  readonly #names: () => readonly string[]
  readonly #running: Promise<void>
  /** By shard, the last owner that was alive. */
  readonly #owners: string[] = []
  #counts: MoveCounts = none
  readonly #looks = new Mutex()
  #isOver = false

  constructor(cluster: Pick<TestCluster, 'owners'>, names: () => readonly string[]) {
    this.#cluster = cluster
    this.#names = names
    this.#running = this.#watch()
  }

  /** Counts from now on. */
  begin(): void {
    this.#counts = none
  }

  /** Looks once more, because a move of the last moment may have been missed. */
  async counts(): Promise<MoveCounts> {
    await this.#look()
    return this.#counts
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  async #watch(): Promise<void> {
    while (!this.#isOver) {
      await this.#look()
      await wait(periodMs)
    }
  }

  /** One look after the other, so that none notes owners of before an earlier one. */
  #look(): Promise<void> {
    return this.#looks.run(async () => {
      // The database may be away.
      const owners = await this.#cluster.owners().catch(() => [])
      for (const [shard, owner] of owners.entries()) this.#note(shard, owner)
    })
  }

  #note(shard: number, owner: string): void {
    const before = this.#owners[shard]
    if (owner === '' || owner === before) return
    this.#owners[shard] = owner
    if (before === undefined) return
    const names = this.#names()
    const toOwn = names.includes(owner) ? 1 : 0
    const fromOwn = names.includes(before) ? 1 : 0
    const counts = this.#counts
    this.#counts = {
      toOwn: counts.toOwn + toOwn,
      fromOwn: counts.fromOwn + fromOwn,
      others: counts.others + names.length - toOwn - fromOwn,
    }
  }
}

const none: MoveCounts = { toOwn: 0, fromOwn: 0, others: 0 }
