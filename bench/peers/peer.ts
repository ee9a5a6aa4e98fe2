/**
 * What the bench needs of a queue that it measures beside others: its server, a producer and consumers.
 *
 * A peer is one file, of which the bench uses the server and the helper process `peer-client` uses the rest. Producers
 * get objects and make their bytes; consumers parse the bytes again, confirm, and report what is confirmed. Events of one
 * queue arrive in their order. A reader may serve many queues, where the client of the peer allows that.
 */
import type { CaseContext } from '../contestant.ts'
import type { CpuProfile } from '../inspected-process.ts'
import type { Metered } from '../cpu-meter.ts'

export interface PeerEvent {
  readonly message: { readonly text: string }
}

export interface PushedEvent {
  /** From 0 to the number of queues - 1. */
  readonly queue: number
  readonly event: PeerEvent
}

/** What a client needs to know of a server; it is sent to the helper process. */
export interface PeerAddress {
  readonly port: number
  readonly botPort?: number
  readonly key?: string
  /** Of each queue. */
  readonly tokens?: readonly string[]
}

export interface PeerServer extends Metered {
  readonly address: PeerAddress
  residentBytes(): number
  /** Resolves when confirmations that have no response are done, too. */
  settled?(): Promise<void>
  /** Records profiles during `work`, if it is profiled. */
  profiled?<T>(work: () => Promise<T>): Promise<T>
  readonly profiles?: readonly CpuProfile[]
}

export interface PeerProducer {
  /** Resolves when the events, which are in their order, are synced to disk. No lane has two pushes at a time. */
  push(lane: number, events: readonly PushedEvent[]): Promise<void>
}

export interface EventSink {
  /** An event has arrived. */
  arrived(event: PeerEvent): void
  /** This many more events will not come again. */
  confirmed(count: number): void
}

export interface Peer {
  /** Concurrent pushes. Queue q belongs to lane q modulo lanes, so that queues stay ordered. */
  readonly lanes: number
  /** Events of one push at most. */
  readonly batchMax: number
  /** Events that wait for their consumers at most; the default is that of the case. */
  readonly waitingMax?: number
  /** It consumes fewer than the steady rate by far, so it takes no part in the measurement of delays. */
  readonly isSlow?: boolean
  /** Starts the server and creates the queues. It ends with the case. */
  start(context: CaseContext, queues: number): Promise<PeerServer>
  connect(address: PeerAddress, queues: number): Promise<PeerProducer>
  /** Resolves when all consumers wait for events. They run until the process ends. */
  consume(address: PeerAddress, queues: number, sink: EventSink): Promise<void>
}
