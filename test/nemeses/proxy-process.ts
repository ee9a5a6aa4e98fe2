/**
 * The program of a StallingProxy: forwards connections from free ports to the ports that it is given, and prints its own
 * ports in the same order.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { portOf } from '../support/kit/port.ts'

const ports: number[] = []
for (const target of process.argv.slice(2).map(Number)) {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const onward = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    join(client, onward)
    join(onward, client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ports.push(portOf(server))
}
process.stdout.write(`${JSON.stringify(ports)}\n`)
// It ends with the process that started it.
process.stdin.resume().on('end', () => process.exit(0))

function join(from: Socket, to: Socket): void {
  from.pipe(to)
  from.on('error', () => to.destroy())
  from.on('close', () => to.destroy())
}
