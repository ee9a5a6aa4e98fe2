/** The receiving end of a worker for the connections that the primary hands over. */
import { receiveDescriptor } from '../../../native-bindings/descriptor-socket.ts'
import { connectionPacketBytesMax } from '../../limits.ts'
import { type ConnectionPacket, readConnectionPacket } from './connection-packet.ts'

/** The worker's end of a `descriptorSocketPair`: behind the three standard streams and the channel. */
export const inboxDescriptor = 4

export interface ReceivedConnection extends ConnectionPacket {
  readonly descriptor: number
}

export interface Received {
  /** The last one that ever came. */
  readonly lastId: number
  readonly connections: readonly ReceivedConnection[]
  /** Those that came without their descriptor, because this process had none free. */
  readonly lostIds: readonly number[]
}

export class ConnectionInbox {
  readonly #end: number
  readonly #packet = Buffer.allocUnsafeSlow(connectionPacketBytesMax)
  readonly #result = new Int32Array(2)
  #lastId = 0

  /** `end` is one of a `descriptorSocketPair`. */
  constructor(end: number) {
    this.#end = end
  }

  /** All that have come, oldest first: as many as may be in flight at most. */
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
