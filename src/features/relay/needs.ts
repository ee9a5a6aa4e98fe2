/** What other features show of a relay. */
import type { Static } from 'typebox'
import * as is from '../../api/words.ts'

/** Returns what a relay shows of itself. */
function relayFields() {
  return is.named('RelayState', 'What takes updates from another server.', {
    from: is.text('The server that it takes updates from.'),
    state: is.oneOf(['polling', 'paused']),
    reason: is.orNull(is.reason('Why it is paused.')),
    since: is.orNull(is.preciseTime('When it was last paused or resumed.')),
    next_poll: is.orNull(is.preciseTime('When a paused one is tried again.')),
    last_update: is.orNull(is.preciseTime('When the last update was stored.')),
    relayed: is.count('Updates that it stored since the worker of the bot has it.'),
    refused: is.count('Updates that it skipped since then, because no queue can store them.'),
  })
}

/** Returns whether a relay works, in the words of commands. */
function relayText({ from, state, reason }: Static<ReturnType<typeof relayFields>>): string {
  if (state === 'polling') return `works, takes updates from ${from}`
  return `paused, takes nothing from ${from}${reason === null ? '' : `: ${reason}`}`
}

export const needs = { relayFields, relayText }
