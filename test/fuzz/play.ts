/**
 * Plays one conversation with the server and reports what was wrong with its responses. Every wait is bounded: a
 * missing response at the deadline counts as a hang, which is a complaint.
 */
import { connect, type Socket } from 'node:net'
import { AnswerReader } from './answer-reader.ts'
import type { Conversation, Delivery } from './wire-case.ts'
import { complaintAbout } from './verdict.ts'

export interface PlayOptions {
  readonly ports: Readonly<Record<Conversation['listener'], number>>
  /**
   * The longest time without progress. No refusal is held for longer than 3 s, and no poll waits for longer. On a busy
   * machine a conversation as such may exceed any fixed time.
   */
  readonly deadlineMs: number
  /** Whether the conversation was played a moment ago. */
  readonly isRepeated: boolean
}

/** After this time without a response, the client gives up on bytes that may not be a request. */
const quietMs = 15

/**
 * On the private listener a head must arrive within 1 s (`keylessMs`). Where this process, with all its lanes, took nearly as
 * long to write one, the server may have ended the connection.
 */
const headMs = 800

/** Returns what is wrong, as text; undefined if everything is right. */
export async function play(
  conversation: Conversation,
  options: PlayOptions,
): Promise<string | undefined> {
  const client = new Client(conversation, options)
  try {
    return await client.run()
  } catch (error) {
    return `${String(error)} after ${client.answered} answers`
  } finally {
    client.socket.destroy()
  }
}

class Client {
  readonly socket: Socket
  readonly #conversation: Conversation
  readonly #isRepeated: boolean
  readonly #reader: AnswerReader
  readonly #deadline: NodeJS.Timeout
  #isEnded = false
  #isLate = false
  #tookLong = false
  #failure: Error | undefined
  #wake: () => void = () => undefined

  constructor(conversation: Conversation, { ports, deadlineMs, isRepeated }: PlayOptions) {
    this.#conversation = conversation
    this.#isRepeated = isRepeated
    this.#reader = new AnswerReader((nth) => conversation.cases[nth]?.isHead ?? false)
    this.socket = connect({ port: ports[conversation.listener], host: '127.0.0.1', noDelay: true })
    this.socket.on('data', (bytes) => this.#take(bytes))
    this.socket.on('end', () => this.#end())
    this.socket.on('close', () => this.#end())
    // The server may close the connection while bytes are still being written.
    this.socket.on('error', () => undefined)
    this.#deadline = setTimeout(() => {
      this.#isLate = true
      this.#wake()
    }, deadlineMs)
  }

  get answered(): number {
    return this.#reader.answers.length
  }

  async run(): Promise<string | undefined> {
    try {
      return await this.#talk()
    } finally {
      clearTimeout(this.#deadline)
    }
  }

  async #talk(): Promise<string | undefined> {
    const { cases, delivery, finish } = this.#conversation
    await this.#write(delivery)
    if (finish === 'reset' && !this.#isOver) {
      this.socket.resetAndDestroy()
      return undefined
    }
    if (finish === 'half-close at once') this.socket.end()
    const { length: wholeCount } = cases.filter(({ expected }) => expected.kind === 'answer')
    await this.#until(() => this.answered >= wholeCount)
    const last = cases.at(-1)?.expected.kind
    if (last === 'anything') await this.#untilQuiet(wholeCount)
    if (last === 'refused') await this.#until(() => false)
    else if (last === 'anything' || finish.startsWith('half-close')) {
      this.socket.end()
      await this.#until(() => false)
    }
    if (this.#isLate) return `hangs: ${this.answered} answers to ${cases.length} cases`
    if (this.#failure !== undefined) throw this.#failure
    if (this.#wasTooSlow(wholeCount)) return undefined
    return complaintAbout(this.#conversation, this.#reader.answers, this.#isRepeated)
  }

  /** Whether the server may have ended the connection because this process has written a head too slowly. */
  #wasTooSlow(wholeCount: number): boolean {
    if (!this.#tookLong) return false
    return this.answered < wholeCount || this.#reader.answers.at(-1)?.status === 408
  }

  /** Writes until everything is written or the server has ended the connection. */
  async #write(delivery: Delivery): Promise<void> {
    const pieces = this.#conversation.cases.map(({ bytes }) => bytes)
    if (delivery.kind === 'in turn') {
      for (const [nth, piece] of pieces.entries()) {
        await this.#writeInTurn(piece, nth)
        if (nth < pieces.length - 1) await this.#until(() => this.answered > nth)
      }
      return
    }
    const startMs = performance.now()
    const bytes = Buffer.concat(pieces)
    const step = stepOf(delivery, bytes.length)
    for (let at = 0; at < bytes.length && !this.#isOver; at += step) {
      this.#deadline.refresh()
      this.socket.write(bytes.subarray(at, at + step))
      // Waits for the next turn, so that the kernel sends this piece separately.
      if (at + step < bytes.length) await new Promise(setImmediate)
    }
    this.#tookLong =
      this.#conversation.listener === 'private' && performance.now() - startMs > headMs
  }

  /** Writes one request. If it expects to be asked for the body, waits for that or for the response. */
  async #writeInTurn(piece: Buffer, nth: number): Promise<void> {
    this.#deadline.refresh()
    const headEnd = piece.indexOf('\r\n\r\n') + 4
    const isExpecting = /\r\nexpect: 100-continue\r\n/i.test(piece.toString('latin1', 0, headEnd))
    const isWhole = this.#conversation.cases[nth]?.expected.kind === 'answer'
    if (!isExpecting || !isWhole || headEnd === piece.length) {
      this.socket.write(piece)
      return
    }
    const before = this.#reader.continued
    this.socket.write(piece.subarray(0, headEnd))
    await this.#until(() => this.#reader.continued > before || this.answered > nth)
    this.socket.write(piece.subarray(headEnd))
  }

  get #isOver(): boolean {
    return this.#isEnded || this.#isLate || this.#failure !== undefined
  }

  #take(bytes: Buffer): void {
    this.#deadline.refresh()
    try {
      this.#reader.take(bytes)
    } catch (error) {
      this.#failure ??= error instanceof Error ? error : new Error(String(error))
    }
    this.#wake()
  }

  #end(): void {
    this.#isEnded = true
    // A stream of results breaks off with its request.
    const { cases, listener } = this.#conversation
    const isBroken = cases.at(-1)?.expected.kind !== 'answer'
    try {
      if (listener === 'bot' || !isBroken) this.#reader.end()
    } catch (error) {
      this.#failure ??= error instanceof Error ? error : new Error(String(error))
    }
    this.#wake()
  }

  async #until(isReached: () => boolean): Promise<void> {
    while (!this.#isOver && !isReached()) {
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  async #untilQuiet(wholeCount: number): Promise<void> {
    let isQuiet = false
    const timer = setTimeout(() => {
      isQuiet = true
      this.#wake()
    }, quietMs)
    await this.#until(() => isQuiet || this.answered > wholeCount)
    clearTimeout(timer)
  }
}

function stepOf(delivery: Delivery, bytes: number): number {
  if (delivery.kind === 'byte by byte') return 1
  // Otherwise long conversations would consist of too many pieces.
  return delivery.kind === 'split'
    ? Math.max(delivery.pieceBytes, Math.ceil(bytes / 40))
    : bytes || 1
}
