/** Opens connections that wait for a response, a few at a time, and keeps them until the next question. */
import { connect, type Socket } from 'node:net'
import type { IdleQuestion } from '../idle-question.ts'
import { serveHelper } from './serve-helper.ts'

const openingAtATime = 128
const okStatus = 'HTTP/1.1 200'
let sockets: Socket[] = []

serveHelper(async ({ port, connections }: IdleQuestion): Promise<number> => {
  for (const socket of sockets) socket.destroy()
  sockets = []
  const rest = connections.values()
  const openSome = async (): Promise<void> => {
    for (const { first, last } of rest) sockets.push(await open(port, first, last))
  }
  await Promise.all(Array.from({ length: openingAtATime }, openSome))
  return sockets.length
})

/** Ends the process: a case that waits for all connections would not end. */
function fail(why: string): void {
  process.stderr.write(`${why.slice(0, 500)}\n`)
  process.exit(1)
}

/** Resolves when the last request has been sent. */
function open(port: number, first: string, last: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    socket.on('error', reject)
    socket.write(first)
    // A small response arrives in one piece.
    socket.once('data', () => {
      socket.on('data', (bytes) => {
        // On a very busy machine, opening all connections may take longer than a poll waits. Then the poll is repeated,
        // as a bot does.
        if (bytes.toString('latin1', 0, okStatus.length) === okStatus) socket.write(last)
        else fail(`a poll got ${bytes.toString()}`)
      })
      socket.write(last, () => resolve(socket))
    })
  })
}
