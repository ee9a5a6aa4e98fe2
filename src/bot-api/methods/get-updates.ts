import { pollLimitMax, pollTimeoutSMax } from '../limits.ts'
import { allowedUpdatesOfPoll } from '../../queue/filter.ts'
import type { MethodReply, MethodCall } from '../method-call.ts'

const offsetRange = { default: 0, min: -(2 ** 63), max: 2 ** 63 }
const limitRange = { default: pollLimitMax, min: 1, max: pollLimitMax }
const timeoutRange = { default: 0, min: 0, max: pollTimeoutSMax }

/** protocol.md §5. Returns updates immediately, or when there are some, or an empty list at the timeout. */
export function getUpdates({
  params,
  queue,
  presence,
}: MethodCall): MethodReply | Promise<MethodReply> {
  return queue.poller.poll(
    {
      offset: params.integer('offset', offsetRange),
      limit: params.integer('limit', limitRange),
      timeoutMs: params.integer('timeout', timeoutRange) * 1000,
      allowedTypes: allowedUpdatesOfPoll(params.text('allowed_updates')),
    },
    presence,
  )
}
