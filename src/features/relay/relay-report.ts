/** What a relay is asked for, and what it shows of itself. */
import type { Static } from 'typebox'
import type { Token } from '../../api/token.ts'
import { fieldValues } from '../../private-api/field-values.ts'
import type { needs } from './needs.ts'

/** What a relay does now. */
export interface RelayState {
  readonly state: 'polling' | 'paused'
  /** Why it is paused, as one sentence. */
  readonly reason: string | undefined
  /** Wall time of the last change between the two. */
  readonly sinceMs: number
  /** Wall time of the next poll, if it is paused. */
  readonly nextPollMs: number | undefined
  /** Since the worker has the bot. */
  readonly relayed: number
  readonly refused: number
}

/** What a relay is set to. */
export interface RelayOrder {
  /** An origin. */
  readonly from: string
  /** Absent if the stored one stays. */
  readonly token: Token | undefined
}

/** A relay as the private API shows it. */
export interface RelayReport extends Omit<RelayState, 'nextPollMs' | 'sinceMs'> {
  readonly from: string
  readonly sinceMs: number | undefined
  readonly nextPollMs: number | undefined
  /** Wall time of the last update; undefined if there was none. */
  readonly lastUpdateMs: number | undefined
}

/** Returns a relay as the API shows it. */
export function relayJson(relay: RelayReport): Static<ReturnType<typeof needs.relayFields>> {
  const { from, state, reason = null, relayed, refused } = relay
  return {
    from,
    state,
    reason,
    since: fieldValues.timeOrNull(relay.sinceMs),
    next_poll: fieldValues.timeOrNull(relay.nextPollMs),
    last_update: fieldValues.timeOrNull(relay.lastUpdateMs),
    relayed,
    refused,
  }
}
