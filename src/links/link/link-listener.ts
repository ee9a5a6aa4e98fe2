/**
 * The Unix socket on which a worker accepts the links of the other workers.
 *
 * The socket file is made under a temporary name and renamed. That replaces the file of a killed predecessor atomically.
 * libuv unlinks the name that it bound when a server closes; at a reload that is not the successor's file, because a
 * worker that leaves renames its file back before the successor renames its own.
 */
import { renameSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { listenAt } from './listen-at.ts'
import { linkSocketPath } from './link-socket-path.ts'

export interface LinkListenerOptions {
  readonly runDir: string
  readonly worker: number
  readonly accept: (socket: Socket) => void
}

export class LinkListener {
  readonly #options: LinkListenerOptions
  readonly #server: Server
  readonly #links = new Set<Socket>()

  constructor(options: LinkListenerOptions) {
    this.#options = options
    this.#server = createServer((socket) => {
      this.#links.add(socket)
      socket.once('close', () => this.#links.delete(socket))
      options.accept(socket)
    })
  }

  /** Listens under a temporary name, which nobody uses before `show`. */
  async listen(): Promise<void> {
    await listenAt(this.#server, this.#ownPath)
  }

  /** From now on the other workers reach this process, and no longer an earlier one in this place. */
  show(): void {
    renameSync(this.#ownPath, linkSocketPath(this.#options))
  }

  /** New links of other workers wait for the next `show`, of this process or the successor. */
  hide(): void {
    renameSync(linkSocketPath(this.#options), this.#ownPath)
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#links) socket.destroy()
  }

  /** The name that the kernel has for the socket, and that libuv removes at the end. */
  get #ownPath(): string {
    return `${linkSocketPath(this.#options)}.${process.pid}`
  }
}
