/**
 * The messages on the channel between the primary and a worker. Hand-offs, control calls and the results of those calls
 * share the channel, so every message names its type.
 *
 *   primary -> worker   connections, reopen-log, call
 *   worker -> primary   ready, taken, answer
 */

/** Connections are in the worker's inbox (connection-inbox.ts). The worker always replies with `taken`. */
export interface ConnectionsMessage {
  readonly postbote: 'connections'
}

/** The log file was renamed: the worker opens it again. */
export interface ReopenLogMessage {
  readonly postbote: 'reopen-log'
}

/** The worker receives messages: the primary may send control calls from now on. */
export interface ReadyMessage {
  readonly postbote: 'ready'
}

/** The worker has received all connections up to this id, except those that arrived without a descriptor. */
export interface TakenMessage {
  readonly postbote: 'taken'
  readonly id: number
  readonly lostIds: readonly number[]
}

/** A message of Comlink. */
export interface ControlMessage {
  readonly postbote: 'call' | 'answer'
  readonly data: unknown
}

export type ChannelMessage =
  | ConnectionsMessage
  | ReopenLogMessage
  | ReadyMessage
  | TakenMessage
  | ControlMessage

/** Both ends are of one build, so the tag alone identifies the type. */
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
