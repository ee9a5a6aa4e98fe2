/** What a bot API method receives and returns. Each method is a file in methods/. */
import type { IncomingMessage } from 'node:http'
import type { BotQueue } from '../bots/bot-queue.ts'
import type { ClientPresence } from '../bots/poller.ts'
import type { WindowEntry } from '../queue/window/window.ts'
import type { Params } from './params.ts'

export interface MethodCall {
  readonly queue: BotQueue
  readonly params: Params
  readonly request: IncomingMessage
  /** Valid. A secret: it is never logged, nor stored as it is. */
  readonly token: string
  /** Notified if the client disconnects before it has its response. */
  readonly presence: ClientPresence
}

/** A result as JSON text. */
export interface ResultReply {
  readonly result: string
  readonly description?: string
}

/** A result, or a list of updates that already has its wire form. */
export type MethodReply = ResultReply | readonly WindowEntry[]

export type Method = (call: MethodCall) => MethodReply | Promise<MethodReply>
