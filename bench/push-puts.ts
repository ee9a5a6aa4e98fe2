/**
 * The least that a pushed update writes: its record, and the state of its queue. For yardsticks that store as the server
 * does.
 */
import { kinds } from '../src/shard/kinds.ts'
import { emptyQueueState, encodeQueueState } from '../src/shard/records/record.ts'

export interface Put {
  readonly type: 'put'
  readonly key: Buffer
  readonly value: Buffer
}

/** `value` is the record of the update. */
export function pushPuts(push: {
  readonly queue: number
  readonly updateId: number
  readonly value: Buffer
}): readonly [Put, Put] {
  const { queue, updateId, value } = push
  const state = emptyQueueState(updateId + 1)
  state.floor = 0
  state.liveCount = 1
  state.liveBytes = 300
  const stateKey = kinds.state.key(queue)
  return [
    { type: 'put', key: kinds.update.key(queue, updateId), value },
    { type: 'put', key: stateKey, value: encodeQueueState(stateKey, state) },
  ]
}
