/**
 * Checks what a key may do: a call needs a scope and the bots that it is about, as its row in the table of operations says.
 * The admin key needs nothing of this.
 *
 *     push     the two calls that push updates, and where the shards are
 *     read     everything else that only reads, but not the records of shards and the keys
 *     manage   everything that changes bots, their webhooks, signing keys, dead letters, limits and pauses
 *     all      all of this, keys, and the files and records of shards
 */
import { type Access, assertAllBots, assertScope, botRefusal } from '../api/access.ts'
import { PostboteError } from '../kit/errors.ts'
import type { Operation, Subject } from '../api/operation.ts'

/** Calls about no bot, and those whose handler checks each bot by itself. */
const checkedLater: ReadonlySet<Subject> = new Set(['own', 'pairs', 'nobody'])

/**
 * Checks that the sender of a request may make the call.
 *
 * @param operation - undefined for a route between workers, and one that needs no key
 * @param botId - the bot in the path
 * @throws KEY_LACKS_SCOPE, KEY_LACKS_BOT; NOT_FOUND for a route between workers
 */
export function assertMay(
  access: Access,
  operation: Operation | undefined,
  botId: string | undefined,
): void {
  if (access === 'root') return
  // Only workers call the routes between workers, and they have the admin key.
  if (operation === undefined || operation.scope === 'open') throw new PostboteError('NOT_FOUND')
  const { scope, about } = operation
  assertScope(access, scope)
  if (about === 'bot' || about === 'queue') {
    // A path that names no bot is refused by its route for any key without restrictions, and here for the others.
    const refusal = botRefusal(access, /^\d{1,16}$/.test(botId ?? '') ? Number(botId) : -1)
    if (refusal !== undefined) throw refusal
  } else if (!checkedLater.has(about)) assertAllBots(access)
}
