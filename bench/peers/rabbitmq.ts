/**
 * RabbitMQ: a quorum queue, on one node, for each queue. A push publishes persistent messages on one of several channels
 * and waits for the publisher confirms. A consumer confirms all that it has processed in a turn of its event loop by the
 * last delivery tag of its channel.
 */
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../../test/support/kit/port.ts'
import type { CaseContext } from '../contestant.ts'
import type { EventSink, Peer, PeerAddress } from './peer.ts'
import { peerModule } from './peer-module.ts'
import { PeerProcess } from './peer-process.ts'

const lanes = 16
const channels = 10
const prefetch = 100
/** The program itself, without the script that starts it as another user. */
export const rabbitmqServer = '/usr/lib/rabbitmq/bin/rabbitmq-server'

/** The parts of amqplib that are used. */
interface Message {
  readonly content: Buffer
}
interface Channel {
  assertQueue(name: string, options: object): Promise<unknown>
  prefetch(count: number): Promise<unknown>
  consume(queue: string, onMessage: (message: Message | null) => void): Promise<unknown>
  ack(message: Message, isForAllBefore: boolean): void
}
interface ConfirmChannel extends Channel {
  sendToQueue(queue: string, content: Buffer, options: object): boolean
  waitForConfirms(): Promise<unknown>
}
interface Connection {
  createChannel(): Promise<Channel>
  createConfirmChannel(): Promise<ConfirmChannel>
  close(): Promise<void>
}
interface Amqp {
  connect(url: string): Promise<Connection>
}

export const rabbitmq: Peer = {
  lanes,
  batchMax: 100,
  async start(context, queues) {
    const server = await startServer(context)
    const connection = await connected(server.address)
    const channel = await connection.createChannel()
    for (let queue = 0; queue < queues; queue++) {
      const options = { durable: true, arguments: { 'x-queue-type': 'quorum' } }
      await channel.assertQueue(nameOf(queue), options)
    }
    await connection.close()
    return server
  },
  async connect(address) {
    const connection = await connected(address)
    const opened = await Promise.all(
      Array.from({ length: lanes }, () => connection.createConfirmChannel()),
    )
    return {
      push: async (lane, events) => {
        const channel = opened[lane]
        for (const { queue, event } of events) {
          const content = Buffer.from(JSON.stringify(event))
          channel?.sendToQueue(nameOf(queue), content, { persistent: true })
        }
        await channel?.waitForConfirms()
      },
    }
  },
  async consume(address, queues, sink) {
    const connection = await connected(address)
    for (let nth = 0; nth < channels; nth++) {
      const channel = await connection.createChannel()
      await channel.prefetch(prefetch)
      const onMessage = confirming(channel, sink)
      const own = Array.from({ length: queues }, (_, queue) => queue).filter(
        (queue) => queue % channels === nth,
      )
      await Promise.all(own.map((queue) => channel.consume(nameOf(queue), onMessage)))
    }
  },
}

function confirming(channel: Channel, sink: EventSink): (message: Message | null) => void {
  let last: Message | undefined
  let count = 0
  return (message) => {
    if (message === null) return
    sink.arrived(JSON.parse(message.content.toString()))
    if (last === undefined) {
      setImmediate(() => {
        if (last !== undefined) channel.ack(last, true)
        sink.confirmed(count)
        last = undefined
        count = 0
      })
    }
    last = message
    count += 1
  }
}

function nameOf(queue: number): string {
  return `queue-${queue}`
}

function connected({ port }: PeerAddress): Promise<Connection> {
  return peerModule<Amqp>('amqplib').connect(`amqp://127.0.0.1:${port}?heartbeat=0`)
}

/** Erlang's name server is ours, too: one that the node starts would stay after it. All listen on loopback only. */
async function startServer(context: CaseContext): Promise<PeerProcess> {
  const directory = await mkdtemp(join(context.directory, 'rabbitmq-'))
  const [port, namePort, nodePort] = [await freePort(), await freePort(), await freePort()]
  const names = ['-port', `${namePort}`, '-address', '127.0.0.1']
  await PeerProcess.start(context, { file: 'epmd', args: names, port: namePort, cwd: directory })
  const settings = ['loopback_users = none', `listeners.tcp.1 = 127.0.0.1:${port}`]
  await writeFile(join(directory, 'rabbitmq.conf'), `${settings.join('\n')}\n`)
  await writeFile(join(directory, 'plugins'), '[].\n')
  await mkdir(join(directory, 'log'))
  const env = {
    HOME: directory,
    ERL_EPMD_PORT: `${namePort}`,
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_NODENAME: `bench-${port}@localhost`,
    RABBITMQ_DIST_PORT: `${nodePort}`,
    RABBITMQ_MNESIA_BASE: join(directory, 'data'),
    RABBITMQ_LOG_BASE: join(directory, 'log'),
    RABBITMQ_CONFIG_FILE: join(directory, 'rabbitmq.conf'),
    RABBITMQ_CONF_ENV_FILE: join(directory, 'none'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(directory, 'plugins'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
  }
  return PeerProcess.start(context, { file: rabbitmqServer, args: [], port, cwd: directory, env })
}
