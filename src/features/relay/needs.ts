/** What other features show of a relay. */
import { type Static, Type } from 'typebox'
import { fieldSchemas } from '../../api/field-schemas.ts'
import type { RelayReport } from '../../bots/bot-service.ts'
import { fieldValues } from '../../private-api/field-values.ts'

const { count, orNull, preciseTime } = fieldSchemas

/** Returns what a relay shows of itself. */
function relayFields() {
  return Type.Object(
    {
      from: Type.String({ description: 'The server that it takes updates from.' }),
      state: Type.Enum(['polling', 'paused'], { type: 'string' }),
      reason: orNull(Type.String({ description: 'Why it is paused.' })),
      since: orNull(preciseTime('When it was last paused or resumed.')),
      next_poll: orNull(preciseTime('When a paused one is tried again.')),
      last_update: orNull(preciseTime('When the last update was stored.')),
      relayed: count('Updates that it stored since the worker of the bot has it.'),
      refused: count('Updates that it skipped since then, because no queue can store them.'),
    },
    { $id: 'RelayState', description: 'What takes updates from another server.' },
  )
}

/** Returns a relay as the API shows it. */
function relayJson(relay: RelayReport): Static<ReturnType<typeof relayFields>> {
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

export const needs = { relayFields, relayJson }
