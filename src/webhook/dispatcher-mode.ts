/**
 * The life of a webhook's dispatcher.
 *
 *     idle --start--> running <--pause, resume--> paused
 *                        |                          |
 *                        +--drain--> draining <-----+     deliveries in flight finish, nothing else is sent
 *                        +--410----> gone     <-----+     the endpoint has returned 410 for too long
 *     any  --close--> closed
 */
import assert from 'node:assert'

export type DispatcherMode = 'idle' | 'running' | 'paused' | 'draining' | 'gone' | 'closed'

const transitions: Readonly<Record<DispatcherMode, readonly DispatcherMode[]>> = {
  idle: ['running', 'closed'],
  running: ['paused', 'draining', 'gone', 'closed'],
  paused: ['running', 'draining', 'gone', 'closed'],
  draining: ['closed'],
  gone: ['closed'],
  closed: [],
}

/** Returns `to`. Any other change than those drawn above is a bug and throws an AssertionError. */
export function changedMode(from: DispatcherMode, to: DispatcherMode): DispatcherMode {
  assert(transitions[from].includes(to), `from ${from} to ${to}`)
  return to
}

/** Whether a dispatcher reads its queue and reacts to what comes of its deliveries. */
export function isActive(mode: DispatcherMode): boolean {
  return mode === 'running' || mode === 'paused'
}
