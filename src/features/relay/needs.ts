/** What other features show of a relay. */
import { Type } from 'typebox'
import { fieldSchemas } from '../../api/field-schemas.ts'

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

export const needs = { relayFields }
