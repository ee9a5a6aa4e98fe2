/** Asks one server for its shards (`GET /v1/shards`), and checks what it answers. */
import type { Clock } from '../../src/kit/clock.ts'
import type { NodeGroups, StreamConnection } from './lane-map.ts'
import { clientResponseBytesMax } from './limits.ts'
import { PostboteClientError } from './postbote-client-error.ts'
import { isRecord, parsedOrUndefined, responseError, responseText } from './response-error.ts'
import { toClientError } from './server-connection.ts'
import { shardsMax } from '../../src/kit/limits.ts'

/** A stream waits this long for the answer. Chosen: it takes no IO, and without it a stream only costs more. */
const shardsWaitMs = 2_000

/** How to ask. */
export interface ReadGroupsOptions {
  readonly clock: Clock
  /** Ends the wait. */
  readonly signal: AbortSignal
  /** Whether the wait is for the connection, too, which otherwise has its own time limit. */
  readonly isHasty: boolean
}

/**
 * Makes one attempt.
 *
 * @returns The groups, or why there are none: UNEXPECTED_ANSWER if they cannot be used, TIMEOUT if they do not come, or any error
 *   of a call.
 */
export async function readGroups(
  connection: StreamConnection,
  { clock, signal, isHasty }: ReadGroupsOptions,
): Promise<NodeGroups | PostboteClientError> {
  const client = connection.streamClient()
  const limit = new AbortController()
  const wait = () => clock.after(shardsWaitMs, () => limit.abort())
  let timer = isHasty ? wait() : undefined
  client.once('connect', () => (timer ??= wait()))
  try {
    const response = await client.request({
      ...connection.requestOf({ method: 'GET', path: '/v1/shards' }),
      signal: AbortSignal.any([signal, limit.signal]),
    })
    const text = await responseText(response.body)
    if (response.statusCode !== 200) {
      return connection.withoutKey(responseError(response, text))
    }
    const answer = text.length > clientResponseBytesMax ? undefined : parsedOrUndefined(text)
    return groupsIn(answer, connection)
  } catch (error) {
    return limit.signal.aborted ? new PostboteClientError('TIMEOUT') : toClientError(error)
  } finally {
    timer?.cancel()
    void client.destroy()
  }
}

/** A later version may add fields. */
function groupsIn(answer: unknown, connection: StreamConnection): NodeGroups | PostboteClientError {
  if (isRecord(answer)) {
    const { shards, groups, version } = answer
    if (isShardCount(shards) && Number.isSafeInteger(version) && areGroups(groups, shards)) {
      return { connection, shards, groups }
    }
  }
  return new PostboteClientError('UNEXPECTED_ANSWER', {
    message: 'Expected the shards of the server in groups, got something else',
  })
}

function isShardCount(shards: unknown): shards is number {
  if (typeof shards !== 'number' || !Number.isInteger(shards)) return false
  return shards >= 1 && shards <= shardsMax && (shards & (shards - 1)) === 0
}

/** Whether they are lists of shards, each shard at most once. */
function areGroups(groups: unknown, shards: number): groups is readonly (readonly number[])[] {
  if (!Array.isArray(groups) || groups.length > shardsMax) return false
  if (!groups.every((group) => Array.isArray(group) && group.length > 0)) return false
  const all: unknown[] = groups.flat()
  const isShard = (shard: unknown): boolean =>
    typeof shard === 'number' && Number.isInteger(shard) && shard >= 0 && shard < shards
  return all.every(isShard) && new Set(all).size === all.length
}
