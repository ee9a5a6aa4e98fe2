/**
 * The Unix socket on which a worker accepts the links of the other workers.
 *
 * The socket file is made under a temporary name and renamed. That replaces the file of a killed predecessor atomically.
 * libuv unlinks the name that it bound when a server closes; at a reload that is not the successor's file, because a
 * worker that leaves renames its file back before the successor renames its own.
 */
import { renameSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { socketPathBytesMax } from '../../kit/limits.ts'
import { listenBacklog } from '../../process/limits.ts'
import { linkSocketPath } from './connect-link.ts'

export class LinkListener {
  /** Without the name that it has before `show`. */
  readonly #path: string
  readonly #server: Server
  readonly #links = new Set<Socket>()

  constructor(runDir: string, worker: number, accept: (socket: Socket) => void) {
    this.#path = linkSocketPath({ runDir, worker })
    this.#server = createServer((socket) => {
      this.#links.add(socket)
      socket.once('close', () => this.#links.delete(socket))
      accept(socket)
    })
  }

  /** Listens under a temporary name, which nobody uses before `show`. */
  async listen(): Promise<void> {
    await listenAt(this.#server, this.#ownPath)
  }

  /** From now on the other workers reach this process, and no longer an earlier one in this place. */
  show(): void {
    renameSync(this.#ownPath, this.#path)
  }

  /** New links of other workers wait for the next `show`, of this process or the successor. */
  hide(): void {
    renameSync(this.#path, this.#ownPath)
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#links) socket.destroy()
  }

  /** The name that the kernel has for the socket, and that libuv removes at the end. */
  get #ownPath(): string {
    return `${this.#path}.${process.pid}`
  }
}

/** Makes a server listen on a Unix socket. Rejects, with a message for the operator, if it cannot. */
export async function listenAt(server: Server, path: string): Promise<void> {
  if (Buffer.byteLength(path) >= socketPathBytesMax) {
    throw new Error(
      `the path of the socket ${path} must be shorter than ${socketPathBytesMax} bytes: choose a shorter directory`,
    )
  }
  rmSync(path, { force: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    // Without `exclusive`, node:cluster would ask the primary to listen.
    server.listen({ path, exclusive: true, backlog: listenBacklog }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  server.on('error', () => undefined) // EMFILE: libuv has closed what it could not accept.
}
