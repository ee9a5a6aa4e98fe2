/** The nodes of a cluster, or the workers of the one server, with their shards. */
import { ApiError } from './api-client.ts'
import { element } from './element.ts'
import {
  type Cell,
  type Column,
  goneCells,
  nodeCells,
  nodeColumns,
  workerCells,
  workerColumns,
} from './node-cells.ts'
import type { PageContext } from './page-context.ts'
import { SeenNodes } from './seen-nodes.ts'
import type { NodeShape } from './shapes.ts'

export class NodesPanel {
  readonly root = element('div')
  readonly #context: PageContext
  readonly #nodes = new RowsTable('Nodes', nodeColumns)
  readonly #workers = new RowsTable('Workers', workerColumns)
  readonly #seen = new SeenNodes()

  constructor(context: PageContext) {
    this.#context = context
    this.root.append(this.#nodes.root, this.#workers.root)
  }

  async refresh(): Promise<void> {
    const { api, clock } = this.#context
    let nodes: readonly NodeShape[] = []
    try {
      nodes = (await api.call('listNodes', {})).nodes
    } catch (error) {
      // A server that is older than this call.
      if (!(error instanceof ApiError && error.status === 404)) throw error
    }
    const gone = this.#seen.add(nodes, clock.nowMs())
    const [first, ...others] = nodes
    const isCluster =
      others.length > 0 || gone.length > 0 || (first?.heartbeat_age_ms ?? null) !== null
    this.#nodes.show(isCluster ? [...nodes.map(nodeCells), ...gone.map(goneCells)] : [])
    // Of several nodes, the rows of the nodes say how many workers serve.
    const isAlone = others.length === 0 && first !== undefined
    this.#workers.show(
      isAlone ? first.workers.map((worker) => workerCells(worker, first.shards)) : [],
    )
  }
}

/** A table that is hidden without rows. */
class RowsTable {
  readonly root: HTMLElement
  readonly #columns: readonly Column[]
  readonly #body = element('tbody')

  constructor(title: string, columns: readonly Column[]) {
    this.#columns = columns
    const heads = columns.map(({ title: head, style }) =>
      element('th', { scope: 'col', class: style }, head),
    )
    this.root = element(
      'section',
      { class: 'card', hidden: true },
      element('h2', {}, title),
      element(
        'div',
        { class: 'scroll short', tabindex: 0, role: 'region', 'aria-label': title },
        element(
          'table',
          {},
          element('caption', { class: 'hidden-label' }, title),
          element('thead', {}, element('tr', {}, ...heads)),
          this.#body,
        ),
      ),
    )
  }

  show(rows: readonly (readonly Cell[])[]): void {
    this.root.hidden = rows.length === 0
    this.#body.replaceChildren(
      ...rows.map((cells) =>
        element(
          'tr',
          {},
          ...cells.map(({ text, style }, nth) => {
            const columnStyle = this.#columns[nth]?.style ?? ''
            return element('td', { class: `${columnStyle} ${style}`.trim() }, text)
          }),
        ),
      ),
    )
  }
}
