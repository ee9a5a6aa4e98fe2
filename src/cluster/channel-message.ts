/**
 * What goes over the channel between the primary and a worker. Hand-offs, control calls and their answers
 * share it, so every message says what it is.
 *
 *   primary -> worker   connection (with a handle), call
 *   worker -> primary   ready, taken, answer
 */
import type { ListenerKind } from './listener.ts'

/** An accepted connection; its handle goes beside it. */
export interface ConnectionMessage {
  readonly postbote: 'connection'
  readonly id: number
  readonly listener: ListenerKind
  readonly peerAddress: string
  /** What was read of it so far. */
  readonly bytes: Uint8Array
}

/** The worker listens: control calls may be sent from now on. */
export interface ReadyMessage {
  readonly postbote: 'ready'
}

/** The connection with this id is in the worker's hands. */
export interface TakenMessage {
  readonly postbote: 'taken'
  readonly id: number
}

/** A message of Comlink. */
export interface ControlMessage {
  readonly postbote: 'call' | 'answer'
  readonly data: unknown
}

export type ChannelMessage = ConnectionMessage | ReadyMessage | TakenMessage | ControlMessage

/** Both ends are of one build, so the tag vouches for the rest. */
export function isMessage<T extends ChannelMessage['postbote']>(
  message: unknown,
  tag: T,
): message is Extract<ChannelMessage, { readonly postbote: T }> {
  return (
    typeof message === 'object' &&
    message !== null &&
    'postbote' in message &&
    message.postbote === tag
  )
}
