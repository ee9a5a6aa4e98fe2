/**
 * The life of a webhook's dispatcher.
 *
 *     idle --start--> running <--pause, resume--> paused
 *                        |                          |
 *                        +--drain--> draining <-----+     deliveries in flight finish, nothing else is sent
 *                        +--410----> gone     <-----+     the endpoint has returned 410 for too long
 *     any  --close--> closed
 */
import { changesOf } from '../kit/changes-of.ts'

export type DispatcherMode = 'idle' | 'running' | 'paused' | 'draining' | 'gone' | 'closed'

/** Returns the new mode. Any other change than those drawn above is a bug. */
export const changedMode = changesOf<DispatcherMode>({
  idle: ['running', 'closed'],
  running: ['paused', 'draining', 'gone', 'closed'],
  paused: ['running', 'draining', 'gone', 'closed'],
  draining: ['closed'],
  gone: ['closed'],
  closed: [],
})

/** Whether a dispatcher reads its queue and reacts to what comes of its deliveries. */
export function isActive(mode: DispatcherMode): boolean {
  return mode === 'running' || mode === 'paused'
}
