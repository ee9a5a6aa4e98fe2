/**
 * What goes over the channel between the primary and a worker. Hand-offs, control calls and their answers
 * share it, so every message says what it is.
 *
 *   primary -> worker   connections, call
 *   worker -> primary   ready, taken, answer
 */

/** Connections lie in the worker's inbox (connection-inbox.ts). Always answered by `taken`. */
export interface ConnectionsMessage {
  readonly postbote: 'connections'
}

/** The worker listens: control calls may be sent from now on. */
export interface ReadyMessage {
  readonly postbote: 'ready'
}

/** The connections up to this id are in the worker's hands, but for those that came without a descriptor. */
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

export type ChannelMessage = ConnectionsMessage | ReadyMessage | TakenMessage | ControlMessage

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
