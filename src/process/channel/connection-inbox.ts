/** The receiving end, in a worker, of the connections that the primary hands off. */
import { receiveDescriptor } from '../../../native-bindings/descriptor-socket.ts'
import { connectionPacketBytesMax } from '../limits.ts'
import { type ConnectionPacket, readConnectionPacket } from './connection-packet.ts'

/** The descriptor of the worker's end of a `descriptorSocketPair`: the first after stdin, stdout, stderr and the channel. */
export const inboxDescriptor = 4

export interface ReceivedConnection extends ConnectionPacket {
  readonly descriptor: number
}

export interface Received {
  /** The id of the last connection that has arrived so far. */
  readonly lastId: number
  readonly connections: readonly ReceivedConnection[]
  /** The ids of connections that arrived without their descriptor, because this process had none free. */
  readonly lostIds: readonly number[]
}

export class ConnectionInbox {
  readonly #end: number
  readonly #packet = Buffer.allocUnsafeSlow(connectionPacketBytesMax)
  readonly #result = new Int32Array(2)
  #lastId = 0

  /** @param end - one end of a `descriptorSocketPair` */
  constructor(end: number) {
    this.#end = end
  }

  /** Returns all connections that have arrived, oldest first: at most as many as may be in flight. */
  receive(): Received {
    const connections: ReceivedConnection[] = []
    const lostIds: number[] = []
    while (receiveDescriptor(this.#end, this.#packet, this.#result)) {
      const [descriptor = -1, length = 0] = this.#result
      const packet = readConnectionPacket(this.#packet, length)
      this.#lastId = packet.id
      if (descriptor === -1) lostIds.push(packet.id)
      else connections.push({ descriptor, ...packet })
    }
    return { lastId: this.#lastId, connections, lostIds }
  }
}
