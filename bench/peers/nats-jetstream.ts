/**
 * NATS JetStream: a subject for each queue. The queues are divided among several work-queue streams, because a stream
 * syncs each message alone, and streams sync at the same time. Each stream has one durable consumer, and events are
 * confirmed one by one, as each belongs to another subject. A push publishes all of its events before it waits for
 * their responses.
 */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../../test/support/kit/port.ts'
import type { Peer, PeerAddress, PeerEvent } from './peer.ts'
import { peerModule } from './peer-module.ts'
import { PeerProcess } from './peer-process.ts'

const streams = 16
const durable = 'consumers'
const fetchedMax = 500
const pendingMax = 50_000
const timeoutMs = 60_000

/** The parts of the clients that are used. */
interface Connection {
  close(): Promise<void>
}
interface Transport {
  connect(options: { readonly servers: string }): Promise<Connection>
}
interface Message {
  json(): PeerEvent
  ack(): void
}
interface JetStream {
  publish(subject: string, payload: string, options: { readonly timeout: number }): Promise<unknown>
  readonly consumers: {
    get(
      stream: string,
      name: string,
    ): Promise<{
      consume(options: {
        readonly max_messages: number
        readonly callback: (message: Message) => void
      }): Promise<unknown>
    }>
  }
}
interface Manager {
  readonly streams: { add(settings: object): Promise<unknown> }
  readonly consumers: { add(stream: string, settings: object): Promise<unknown> }
}
interface JetStreamModule {
  jetstream(connection: Connection): JetStream
  jetstreamManager(connection: Connection): Promise<Manager>
}

export const natsJetStream: Peer = {
  lanes: 32,
  batchMax: 100,
  async start(context) {
    const directory = await mkdtemp(join(context.directory, 'nats-'))
    const port = await freePort()
    const file = join(directory, 'nats.conf')
    await writeFile(
      file,
      `host: 127.0.0.1\nport: ${port}\njetstream { store_dir: "${directory}", sync_interval: always }\n`,
    )
    const command = { file: 'nats-server', args: ['-c', file], port, cwd: directory }
    const server = await PeerProcess.start(context, command)
    const connection = await connected(server.address)
    await addStreams(connection)
    await connection.close()
    return server
  },
  async connect(address) {
    const client = jetStreamModule().jetstream(await connected(address))
    return {
      push: async (_lane, events) => {
        await Promise.all(
          events.map(({ queue, event }) =>
            client.publish(subjectOf(queue), JSON.stringify(event), { timeout: timeoutMs }),
          ),
        )
      },
    }
  },
  async consume(address, _queues, sink) {
    const client = jetStreamModule().jetstream(await connected(address))
    for (let stream = 0; stream < streams; stream++) {
      const consumer = await client.consumers.get(nameOf(stream), durable)
      await consumer.consume({
        max_messages: fetchedMax,
        callback: (message) => {
          sink.arrived(message.json())
          message.ack()
          sink.confirmed(1)
        },
      })
    }
  },
}

function jetStreamModule(): JetStreamModule {
  return peerModule<JetStreamModule>('@nats-io/jetstream')
}

function connected({ port }: PeerAddress): Promise<Connection> {
  return peerModule<Transport>('@nats-io/transport-node').connect({ servers: `127.0.0.1:${port}` })
}

async function addStreams(connection: Connection): Promise<void> {
  const manager = await jetStreamModule().jetstreamManager(connection)
  for (let stream = 0; stream < streams; stream++) {
    const name = nameOf(stream)
    await manager.streams.add({
      name,
      subjects: [`queue.${stream}.*`],
      retention: 'workqueue',
      storage: 'file',
    })
    await manager.consumers.add(name, {
      durable_name: durable,
      ack_policy: 'explicit',
      max_ack_pending: pendingMax,
    })
  }
}

function nameOf(stream: number): string {
  return `stream-${stream}`
}

function subjectOf(queue: number): string {
  return `queue.${queue % streams}.${queue}`
}
