/** Serves the answers of hostile-answers.ts, and counts what is taken of them. */
import type { Socket } from 'node:net'
import type { TestContext } from 'node:test'
import type { HostileAnswer } from './hostile-answers.ts'
import { startRawServer } from './raw-server.ts'

export interface HostileServer {
  readonly origin: string
  /** Gives another answer from now on, ends all connections, and counts anew. */
  answerWith(answer: HostileAnswer): void
  /** How many bytes each connection has let it write of the present answer. */
  written(): readonly number[]
  /** How many connections are open. */
  open(): number
}

const blockBytes = 64 * 1_024
/** Time is short in tests. */
const dripMs = 5

/** Starts a server that gives each connection one answer. */
export async function startHostileServer(
  t: Pick<TestContext, 'after'>,
  first: HostileAnswer,
): Promise<HostileServer> {
  let answer = first
  let answered: Socket[] = []
  const { port, sockets } = await startRawServer(t, (socket) => {
    const own = answer
    answered.push(socket)
    if (own.isEarly === true) giveAnswer(socket, own)
    else socket.once('data', () => giveAnswer(socket, own))
    socket.resume()
  })
  return {
    origin: `http://127.0.0.1:${port}`,
    answerWith: (next) => {
      answer = next
      answered = []
      for (const socket of sockets) socket.destroy()
    },
    // What the kernel has not taken was not let through.
    written: () =>
      answered.map(({ bytesWritten, writableLength }) => bytesWritten - writableLength),
    open: () => sockets.size,
  }
}

/** Gives an answer on a connection. */
export function giveAnswer(socket: Socket, { head, more, drip, end }: HostileAnswer): void {
  if (head !== '') socket.write(head, 'latin1')
  if (more !== undefined) {
    const block = Buffer.from(more.repeat(Math.ceil(blockBytes / more.length)), 'latin1')
    const goOn = (): void => {
      while (!socket.destroyed && socket.write(block)) continue
    }
    socket.on('drain', goOn)
    goOn()
  }
  if (drip !== undefined) {
    const timer = setInterval(() => socket.write(drip, 'latin1'), dripMs)
    socket.once('close', () => clearInterval(timer))
  }
  if (end === 'end') socket.end()
  else if (end === 'reset') socket.resetAndDestroy()
}
