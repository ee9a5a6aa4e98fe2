/** The nodes of a cluster, or the workers of the one server, with their shards. */
import { ifOlder } from '../frame/api-client.ts'
import { badgeElement, type PagePart } from '../elements/page-part.ts'
import { dataTable } from '../elements/data-table.ts'
import { cardElement, type Child, element } from '../elements/element.ts'
import {
  type Cell,
  type CellColumn,
  goneCells,
  nodeCells,
  nodeColumns,
  workerCells,
  workerColumns,
  SeenNodes,
} from './node-cells.ts'
import type { PageContext } from '../frame/page-context.ts'
import { arriving } from '../elements/waiting.ts'

/** Nodes are asked for their state less often than the server for its rates. */
const pauseMs = 2_000

export function nodesPanel(context: PageContext): HTMLElement {
  const { api, clock, poll } = context
  const nodeTable = cellsTable('Nodes', nodeColumns)
  const workerTable = cellsTable('Workers', workerColumns)
  // What is below waits for the rows, so that it does not jump.
  const root = element('div', {}, nodeTable.root, workerTable.root)
  const arrived = arriving(context, root)
  const seen = new SeenNodes()
  poll(pauseMs, async () => {
    const nodes = (await api.call('listNodes', {}).catch(ifOlder))?.nodes ?? []
    const gone = seen.add(nodes, clock.nowMs())
    const [first, ...others] = nodes
    const isCluster =
      others.length > 0 || gone.length > 0 || (first?.heartbeat_age_ms ?? null) !== null
    nodeTable.show(isCluster ? [...nodes.map(nodeCells), ...gone.map(goneCells)] : [])
    arrived()
    // Of several nodes, the rows of the nodes say how many workers serve.
    const isAlone = others.length === 0 && first !== undefined
    workerTable.show(
      isAlone ? first.workers.map((worker) => workerCells(worker, first.shards)) : [],
    )
  })
  return root
}

/** Makes a part of the page that is hidden without rows. */
function cellsTable(
  title: string,
  columns: readonly CellColumn[],
): PagePart<readonly (readonly Cell[])[]> {
  const cellAt = columns.map((column, nth) => ({
    ...column,
    isHead: nth === 0,
    isPlain: column.title === 'State',
    cell: (cells: readonly Cell[]) => cellChild(column, cells[nth]),
    tone: (cells: readonly Cell[]) => cells[nth]?.style ?? '',
  }))
  const table = dataTable(title, cellAt, { style: 'scroll short' })
  const root = cardElement(title, table.root)
  const show = (rows: readonly (readonly Cell[])[]): void => {
    root.hidden = rows.length === 0
    table.show(rows)
  }
  show([])
  return { root, show }
}

function cellChild({ title }: CellColumn, cell: Cell | undefined): Child {
  return cell !== undefined && title === 'State' ? badgeElement(cell.text, cell.style) : cell?.text
}
