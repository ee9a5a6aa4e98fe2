/** The first page: the server and its bots. */
import { BotTable } from './bot-table.ts'
import { element } from './element.ts'
import { NodesPanel } from './nodes-panel.ts'
import type { PageContext, PageView } from './page-context.ts'
import { ServerPanel } from './server-panel.ts'
import { VisiblePoller } from './visible-poller.ts'

const pauseMs = 1_000
/** A table that moves every second cannot be read. */
const tablePauseMs = 3_000
/** Nodes are asked for their state less often than the server for its rates. */
const nodesPauseMs = 2_000

export class OverviewView implements PageView {
  readonly title = 'Overview'
  readonly root: HTMLElement
  readonly #server: ServerPanel
  readonly #table: BotTable
  readonly #nodes: NodesPanel
  readonly #pollers: readonly VisiblePoller[]

  constructor(context: PageContext) {
    this.#table = new BotTable(context)
    this.#nodes = new NodesPanel(context)
    this.#server = new ServerPanel({ ...context, onFailing: () => this.#table.select('failing') })
    this.root = element(
      'div',
      {},
      element('h1', {}, 'Overview'),
      this.#server.root,
      this.#nodes.root,
      this.#table.root,
    )
    this.#pollers = [
      new VisiblePoller({ ...context, pauseMs, work: () => this.#server.refresh().catch(ignore) }),
      new VisiblePoller({
        ...context,
        pauseMs: tablePauseMs,
        work: () => this.#table.refresh().catch(ignore),
      }),
      new VisiblePoller({
        ...context,
        pauseMs: nodesPauseMs,
        work: () => this.#nodes.refresh().catch(ignore),
      }),
    ]
  }

  close(): void {
    for (const poller of this.#pollers) poller.close()
    this.#server.close()
    this.#table.close()
  }
}

/** The header of the page says that the server does not respond; the next try follows. */
function ignore(): void {}
