/** Attacks the server for a while, in one of three ways (attack-messages.ts), and counts what it did. */
import { connect, type Socket } from 'node:net'
import type {
  AttackCounts,
  AttackPlan,
  AttackQuestion,
  CrowdAttack,
  EndlessAttack,
  RepeatedAttack,
} from '../attack-messages.ts'
import { serveHelper } from './serve-helper.ts'

/** The pause before a reconnection: without it, an attacker that is refused would keep the machine busy. */
const reconnectMs = 5
const crowdTickMs = 10

serveHelper(async ({ attack, durationMs }: AttackQuestion): Promise<AttackCounts> => {
  const attacker = new Attacker(attack)
  attacker.begin()
  await new Promise((resolve) => setTimeout(resolve, durationMs))
  return attacker.end()
})

class Attacker {
  readonly #attack: AttackPlan
  readonly #sockets = new Set<Socket>()
  #isOver = false
  #connections = 0
  #bytesSent = 0
  #answers = 0

  constructor(attack: AttackPlan) {
    this.#attack = attack
  }

  begin(): void {
    const attack = this.#attack
    if (attack.kind === 'crowd') {
      this.#crowd(attack)
      return
    }
    for (let nth = 0; nth < attack.connections; nth++) {
      if (attack.kind === 'repeat') this.#repeat(attack, nth)
      else this.#pour(attack, nth)
    }
  }

  end(): AttackCounts {
    this.#isOver = true
    for (const socket of this.#sockets) socket.destroy()
    return { connections: this.#connections, bytesSent: this.#bytesSent, answers: this.#answers }
  }

  #repeat(attack: RepeatedAttack, nth: number): void {
    const request = attack.requests[nth % attack.requests.length]
    const socket = this.#open(() => this.#repeat(attack, nth))
    const send = (): void => {
      if (request !== undefined) this.#write(socket, request)
    }
    socket.once('connect', send)
    socket.on('data', () => {
      if (socket.writable && socket.writableLength === 0) send()
    })
  }

  #pour(attack: EndlessAttack, nth: number): void {
    const head = attack.heads[nth % attack.heads.length]
    const socket = this.#open(() => this.#pour(attack, nth))
    const pour = (): void => {
      while (socket.writable && this.#write(socket, attack.piece));
    }
    socket.once('connect', () => {
      if (head !== undefined) this.#write(socket, head)
      pour()
    })
    socket.on('drain', pour)
  }

  #crowd(attack: CrowdAttack): void {
    if (this.#isOver) return
    const perTick = (attack.openedPerSecond * crowdTickMs) / 1_000
    for (let nth = 0; nth < perTick && this.#sockets.size < attack.openMax; nth++) {
      const message = attack.messages[this.#connections % attack.messages.length]
      const socket = this.#open(() => undefined)
      if (message !== undefined) this.#write(socket, message)
    }
    setTimeout(() => this.#crowd(attack), crowdTickMs)
  }

  #open(reopen: () => void): Socket {
    const { port, fromAddress } = this.#attack
    const socket = connect({ port, host: '127.0.0.1', localAddress: fromAddress })
    this.#connections += 1
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', () => (this.#answers += 1))
    socket.once('close', () => {
      this.#sockets.delete(socket)
      setTimeout(() => {
        if (!this.#isOver) reopen()
      }, reconnectMs)
    })
    return socket
  }

  #write(socket: Socket, bytes: Uint8Array): boolean {
    this.#bytesSent += bytes.length
    return socket.write(bytes)
  }
}
