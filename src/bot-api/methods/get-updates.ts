import { allowedUpdatesOfPoll } from '../../queue/filter.ts'
import { typesNote } from '../types-note.ts'
import type { MethodReply, MethodCall } from '../method-call.ts'

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

/** A timeout that is no number counts as 0, so the bot polls all the time. */
function timeoutNote(timeout: string | undefined): string | undefined {
  const isNumber = timeout === undefined || /^\s*[+-]?\d/.test(timeout)
  return isNumber ? undefined : 'the timeout of getUpdates is no number and counts as 0'
}

/** protocol.md §5. Returns updates immediately, or when there are some, or an empty list at the timeout. */
export function getUpdates({
  params,
  queue,
  presence,
}: MethodCall): MethodReply | Promise<MethodReply> {
  const [timeout, types] = [params.text('timeout'), params.text('allowed_updates')]
  queue.note('timeout', timeoutNote(timeout))
  if (types !== undefined) queue.note('allowed_updates', typesNote(types))
  return queue.poller.poll(
    {
      offset: params.integer('offset', offsetRange),
      limit: params.integer('limit', limitRange),
      timeoutMs: params.integer('timeout', timeoutRange) * 1000,
      allowedTypes: allowedUpdatesOfPoll(types),
    },
    presence,
  )
}
