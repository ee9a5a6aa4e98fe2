/**
 * The rows of nodes, in memory. `failure` makes every call reject, and `hold` keeps the answers of heartbeats back. The
 * methods that end in `Now` are for simulations, which move time by themselves.
 */
import type { NodeRow, NodeIdentity, NodeTable } from '../../src/store/node-table.ts'

type Beaten = Awaited<ReturnType<NodeTable['beat']>>

export class MemoryNodeTable implements NodeTable {
  /** By the name of the node. */
  readonly #rows = new Map<string, NodeRow>()
  /** While this is set, every call rejects with it. */
  failure: Error | undefined
  /** Answers of heartbeats that a test holds back, in order. */
  readonly held: (() => void)[] = []
  holdsBeats = false
  /** Names of the calls, in order. */
  readonly calls: string[] = []

  async beat(node: NodeIdentity): Promise<Beaten> {
    this.#called('beat')
    const beaten = this.beatNow(node)
    if (this.holdsBeats) await new Promise<void>((resolve) => this.held.push(resolve))
    return beaten
  }

  async nodes(): Promise<readonly NodeRow[]> {
    this.#called('nodes')
    return this.rows
  }

  async joinAlone(node: Omit<NodeRow, 'beat' | 'state'>): Promise<boolean> {
    this.#called('joinAlone')
    if (this.#rows.size > 0) return false
    this.add(node)
    return true
  }

  async evict(row: Pick<NodeRow, 'name' | 'boot' | 'beat'>): Promise<void> {
    this.#called('evict')
    this.evictNow(row)
  }

  async leave({ name, boot }: NodeIdentity): Promise<void> {
    this.#called('leave')
    if (this.#rows.get(name)?.boot === boot) this.#rows.delete(name)
  }

  get rows(): readonly NodeRow[] {
    return [...this.#rows.values()]
  }

  /** Returns the rows from before the heartbeat, as PgNodes does. */
  beatNow({ name, boot }: NodeIdentity): Beaten {
    const nodes = this.rows
    const row = this.#rows.get(name)
    if (row?.boot !== boot) return { isMember: false, nodes }
    this.#rows.set(name, { ...row, beat: `${Number(row.beat) + 1}` })
    return { isMember: true, nodes }
  }

  /** Returns whether the row was deleted: its beat is still the same. */
  evictNow({ name, boot, beat }: Pick<NodeRow, 'name' | 'boot' | 'beat'>): boolean {
    const row = this.#rows.get(name)
    return row?.boot === boot && row.beat === beat && this.#rows.delete(name)
  }

  /** Adds a row whatever other rows there are. */
  add(node: Omit<NodeRow, 'beat' | 'state'>): void {
    this.#rows.set(node.name, { ...node, beat: '0', state: 'serving' })
  }

  #called(name: string): void {
    this.calls.push(name)
    if (this.failure !== undefined) throw this.failure
  }
}
