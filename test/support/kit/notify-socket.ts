/**
 * The Unix socket of a service manager. Node.js has no Unix datagram sockets, so a Python program listens and prints each
 * datagram as a line of JSON.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { EndingTest } from '../server/server.ts'
import { until } from './until.ts'

const program = `
import json, socket, sys
end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = sys.argv[1]
end.bind('\\0' + name[1:] if name.startswith('@') else name)
print(json.dumps('listening'), flush=True)
while True:
    print(json.dumps(end.recv(65536).decode()), flush=True)
`

export class NotifySocket {
  /** All datagrams that have arrived, in order. */
  readonly notices: string[] = []
  readonly #listener: ChildProcessWithoutNullStreams

  private constructor(listener: ChildProcessWithoutNullStreams) {
    this.#listener = listener
    createInterface({ input: listener.stdout }).on('line', (line) => {
      const notice: string = JSON.parse(line)
      this.notices.push(notice)
    })
  }

  /** @param address - a path, or @ and the name of an abstract socket */
  static async start(t: EndingTest, address: string): Promise<NotifySocket> {
    const listener = spawn('python3', ['-c', program, address])
    t.after(async () => void listener.kill('SIGKILL'))
    const socket = new NotifySocket(listener)
    await until(() => socket.notices.shift() === 'listening')
    return socket
  }

  /** The listener does nothing until `resume`, so the socket's queue becomes full. */
  pause(): void {
    this.#listener.kill('SIGSTOP')
  }

  resume(): void {
    this.#listener.kill('SIGCONT')
  }

  /** The notices that are no signs of life. */
  get states(): readonly string[] {
    return this.notices.filter((notice) => notice !== 'WATCHDOG=1')
  }
}
