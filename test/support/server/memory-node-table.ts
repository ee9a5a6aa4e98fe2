/**
 * The rows of nodes and shards, in memory. `connect` returns another connection to the same rows. `failure` makes every
 * call reject, and `hold` keeps the answers of heartbeats back. The methods that end in `Now` are for simulations, which
 * move time by themselves.
 */
import { joinObstacles } from '../../../src/nodes/membership/join.ts'
import type {
  ClusterRows,
  HeartbeatRead,
  JoiningNode,
  JoinRefusal,
  NodeClock,
  NodeIdentity,
  NodeRow,
  NodeState,
  NodeTable,
  SeenNode,
  ShardRow,
} from '../../../src/store/node-table.ts'

interface Rows {
  /** By the name of the node. */
  readonly nodes: Map<string, NodeRow>
  readonly shards: ShardRow[]
  readonly connections: Set<MemoryNodeTable>
}

export class MemoryNodeTable implements NodeTable {
  readonly #rows: Rows
  onChange: (() => void) | undefined
  /** While this is set, every call rejects with it. */
  failure: Error | undefined
  /** Answers of heartbeats that a test holds back, in order. */
  readonly held: (() => void)[] = []
  holdsBeats = false
  /** The wall clock of the database; undefined for one of an earlier version. */
  databaseNowMs: (() => number) | undefined
  /** Names of the calls, in order. */
  readonly calls: string[] = []

  /** @param shards - how many there are, or the rows of another connection */
  constructor(shards: number | Rows = 0) {
    this.#rows =
      typeof shards === 'number' ? { nodes: new Map(), shards: [], connections: new Set() } : shards
    if (typeof shards === 'number') this.resetShards(shards)
    this.#rows.connections.add(this)
  }

  connect(): MemoryNodeTable {
    return new MemoryNodeTable(this.#rows)
  }

  async beat(node: NodeIdentity, clock?: NodeClock): Promise<HeartbeatRead> {
    this.#called('beat')
    const databaseMs = this.databaseNowMs?.()
    const beaten = { ...this.beatNow(node, clock), ...(databaseMs && { databaseMs }) }
    if (this.holdsBeats) await new Promise<void>((resolve) => this.held.push(resolve))
    return beaten
  }

  async read(): Promise<ClusterRows> {
    this.#called('read')
    return this.readNow()
  }

  async join(node: JoiningNode, replaced?: SeenNode): Promise<JoinRefusal | undefined> {
    this.#called('join')
    return this.joinNow(node, replaced)
  }

  async evict(row: SeenNode): Promise<boolean> {
    this.#called('evict')
    return this.evictNow(row)
  }

  async leave(node: NodeIdentity): Promise<void> {
    this.#called('leave')
    this.leaveNow(node)
  }

  async started(node: NodeIdentity): Promise<void> {
    this.#called('started')
    this.turnStateNow(node, 'starting', 'serving')
  }

  async notStarted(node: NodeIdentity): Promise<void> {
    this.#called('notStarted')
    this.turnStateNow(node, 'serving', 'starting')
  }

  async setState(name: string, state: NodeState): Promise<boolean> {
    this.#called('setState')
    return this.setStateNow(name, state)
  }

  async handOver(shard: number, from: NodeIdentity, to: NodeIdentity): Promise<boolean> {
    this.#called('handOver')
    const epoch = this.#rows.shards[shard]?.epoch
    return epoch !== undefined && this.handOverNow({ shard, epoch }, from, to)
  }

  close(): void {
    this.#rows.connections.delete(this)
  }

  get rows(): readonly NodeRow[] {
    return [...this.#rows.nodes.values()]
  }

  get shards(): readonly ShardRow[] {
    return [...this.#rows.shards]
  }

  readNow(): ClusterRows {
    return { nodes: this.rows, shards: this.shards }
  }

  /** Returns the rows from before the heartbeat, as PgNodes does. */
  beatNow({ name, boot }: NodeIdentity, clock?: NodeClock): HeartbeatRead {
    const read = this.readNow()
    const row = this.#rows.nodes.get(name)
    if (row?.boot !== boot) return { isMember: false, ...read }
    const beat = `${Number(row.beat) + 1}`
    this.#rows.nodes.set(name, { ...row, beat, ...(clock && { clock }) })
    return { isMember: true, ...read }
  }

  joinNow(node: JoiningNode, replaced?: SeenNode): JoinRefusal | undefined {
    const isReplaced = (row: NodeRow): boolean =>
      row.name === replaced?.name && row.boot === replaced.boot && row.beat === replaced.beat
    const [obstacle] = joinObstacles(
      node,
      this.rows.filter((row) => !isReplaced(row)),
    )
    if (obstacle !== undefined) return obstacle
    if (replaced !== undefined) this.evictNow(replaced)
    this.add(node, 'starting')
    this.#changed()
    return undefined
  }

  /** Returns whether the row was deleted: its beat is still the same. */
  evictNow({ name, boot, beat }: SeenNode): boolean {
    const row = this.#rows.nodes.get(name)
    return row?.boot === boot && row.beat === beat && this.#delete(name)
  }

  leaveNow({ name, boot }: NodeIdentity): boolean {
    return this.#rows.nodes.get(name)?.boot === boot && this.#delete(name)
  }

  turnStateNow({ name, boot }: NodeIdentity, from: NodeState, to: NodeState): void {
    const row = this.#rows.nodes.get(name)
    if (row?.boot === boot && row.state === from) this.setStateNow(name, to)
  }

  setStateNow(name: string, state: NodeState): boolean {
    const row = this.#rows.nodes.get(name)
    if (row === undefined) return false
    this.#rows.nodes.set(name, { ...row, state })
    this.#changed()
    return true
  }

  /** Does the second step of a hand-over, which compares the epoch that the first one has read. */
  handOverNow(
    { shard, epoch }: Pick<ShardRow, 'shard' | 'epoch'>,
    from: NodeIdentity,
    to: NodeIdentity,
  ): boolean {
    const row = this.#rows.shards[shard]
    const target = this.#rows.nodes.get(to.name)
    if (row?.boot !== from.boot || row.epoch !== epoch) return false
    if (target?.boot !== to.boot || target.state !== 'serving') return false
    this.#own(row, to)
    return true
  }

  /** Does the second step of a claim, as claim-shard.ts does. Returns whether the shard was claimed. */
  claimNow({ shard, epoch }: Pick<ShardRow, 'shard' | 'epoch'>, owner: NodeIdentity): boolean {
    const row = this.#rows.shards[shard]
    if (row === undefined || row.epoch !== epoch) return false
    const isAlive = (boot: string): boolean => this.rows.some((node) => node.boot === boot)
    if (row.boot !== owner.boot && isAlive(row.boot)) return false
    if (!isAlive(owner.boot)) return false
    this.#own(row, owner)
    return true
  }

  /** Adds a row whatever other rows there are. */
  add(node: JoiningNode, state: NodeState = 'serving'): void {
    this.#rows.nodes.set(node.name, { ...node, beat: '0', state })
  }

  /** From now on there are this many shards, which nobody has claimed. */
  resetShards(count: number): void {
    const rows = Array.from({ length: count }, (_, shard) => ({
      shard,
      epoch: '0',
      node: '',
      boot: '',
    }))
    this.#rows.shards.splice(0, Number.POSITIVE_INFINITY, ...rows)
  }

  #own({ shard, epoch }: ShardRow, { name, boot: next }: NodeIdentity): void {
    const row = { shard, epoch: `${Number(epoch) + 1}`, node: name, boot: next }
    this.#rows.shards[shard] = row
    this.#changed()
  }

  #delete(name: string): boolean {
    const has = this.#rows.nodes.delete(name)
    if (has) this.#changed()
    return has
  }

  #changed(): void {
    for (const connection of this.#rows.connections) {
      if (connection !== this) connection.onChange?.()
    }
  }

  #called(name: string): void {
    this.calls.push(name)
    if (this.failure !== undefined) throw this.failure
  }
}
