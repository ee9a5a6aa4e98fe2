import { allowedUpdatesOfPoll } from '../queue/allowed-updates.ts'
import { paramsNote, typesNote } from './params-note.ts'
import type { MethodReply, MethodCall } from './method-call.ts'

const offsetRange = { default: 0, min: -(2 ** 63), max: 2 ** 63 }
/** A poll returns at most this many updates, which is also the default. [ref] */
const pollLimitMax = 100
const limitRange = { default: pollLimitMax, min: 1, max: pollLimitMax }
/**
 * A poll waits at most this long; a longer timeout is clamped, because clients that ask for 60 s or more often give up
 * themselves. [ref]
 */
const pollTimeoutSMax = 50
const timeoutRange = { default: 0, min: 0, max: pollTimeoutSMax }

const own = ['offset', 'limit', 'timeout', 'allowed_updates'] as const

/** protocol.md §5. Returns updates immediately, or when there are some, or an empty list at the timeout. */
export function getUpdates({
  params,
  queue,
  presence,
}: MethodCall): MethodReply | Promise<MethodReply> {
  const types = params.text('allowed_updates')
  if (types !== undefined) queue.note('allowed_updates', typesNote(types))
  const request = {
    offset: params.integer('offset', offsetRange),
    limit: params.integer('limit', limitRange),
    timeoutMs: params.integer('timeout', timeoutRange) * 1000,
    allowedTypes: allowedUpdatesOfPoll(types),
  }
  queue.note('getUpdates', paramsNote('getUpdates', params, own))
  return queue.poller.poll(request, presence)
}
