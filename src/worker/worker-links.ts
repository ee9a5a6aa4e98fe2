/** A worker's end of the links of other workers: of those of its machine, and of those of other nodes if it has a port. */
import type { Socket } from 'node:net'
import type { Clock } from '../kit/clock.ts'
import { LinkListener } from '../links/link/link-listener.ts'
import { type ServedLink, serveLink, type ServeLinkOptions } from '../links/link/serve-link.ts'
import { type TcpLinks, TlsLinkListener } from '../links/link/tls-link-listener.ts'
import type { Log } from '../kit/surroundings.ts'

export interface WorkerLinksOptions extends Omit<ServeLinkOptions, 'clock'> {
  readonly clock: Clock
  readonly log: Log
  readonly runDir: string
  readonly worker: number
  /** Where other nodes reach this worker; nowhere by default. */
  readonly tcpLinks?: TcpLinks | undefined
  readonly opened: (socket: Socket) => void
  readonly closed: (socket: Socket) => void
}

export class WorkerLinks {
  readonly #options: WorkerLinksOptions
  readonly #ofMachine: LinkListener
  readonly #ofNodes: TlsLinkListener | undefined
  readonly #open = new Set<ServedLink>()
  #isLeaving = false

  constructor(options: WorkerLinksOptions) {
    this.#options = options
    const { runDir, worker, tcpLinks, clock, log } = options
    const accept = (socket: Socket): void => this.#accept(socket)
    this.#ofMachine = new LinkListener(runDir, worker, accept)
    this.#ofNodes =
      tcpLinks === undefined ? undefined : new TlsLinkListener(tcpLinks, { clock, log }, accept)
  }

  /** Listens under a temporary name, which nobody uses before `show`. */
  async listen(): Promise<void> {
    await this.#ofMachine.listen()
  }

  /**
   * From now on the other workers reach this process, and no longer an earlier one in this place. Rejects, with a message
   * for the operator, if another program has the port.
   */
  async show(): Promise<void> {
    await this.#ofNodes?.listen()
    this.#ofMachine.show()
  }

  /** New links of other workers wait for the next `show`, of this process or the successor. */
  hide(): void {
    this.#ofMachine.hide()
    this.#ofNodes?.hide()
  }

  /**
   * The successor serves: the other workers open new links, which lead there. A link that waited in the backlog of this
   * process is told the same when it is accepted.
   */
  leave(): void {
    this.#isLeaving = true
    for (const link of this.#open) link.leave()
  }

  close(): void {
    this.#ofMachine.close()
    this.#ofNodes?.close()
  }

  #accept(socket: Socket): void {
    const { opened, closed } = this.#options
    opened(socket)
    const link = serveLink(socket, this.#options)
    this.#open.add(link)
    socket.once('close', () => {
      this.#open.delete(link)
      closed(socket)
    })
    if (this.#isLeaving) link.leave()
  }
}
