/** What a bot API method is given and what it gives back; one file per method in methods/. */
import type { BotQueue } from '../bots/bot-queue.ts'
import type { ClientPresence } from '../bots/poller.ts'
import type { WindowEntry } from '../queue/window.ts'
import type { Params } from './params.ts'

export interface MethodCall {
  readonly queue: BotQueue
  readonly params: Params
  /** Valid. A secret: never logged, nor stored as it is. */
  readonly token: string
  /** Told when the client goes before it has its answer. */
  readonly presence: ClientPresence
}

/** `result` is JSON text. */
export interface ResultAnswer {
  readonly result: string
  readonly description?: string
}

/** A list of updates is in wire form already. */
export type MethodAnswer = ResultAnswer | readonly WindowEntry[]

export type Method = (call: MethodCall) => MethodAnswer | Promise<MethodAnswer>
