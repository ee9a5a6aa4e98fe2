/** `postbote tail`: shows live what happens to a queue of a bot. */
import { waitingClock } from '../../kit/clock.ts'
import { onOff } from '../../config/config-values.ts'
import { tailOperations } from './tail-operations.ts'
import { followCall } from '../../cli/follow-call.ts'
import { remoteCommand } from '../../cli/remote/remote-command.ts'
import { tailDataOf, tailJson, tailLine } from './tail-line.ts'

const payloadsOption = {
  name: 'payloads',
  kind: onOff,
  sentence: 'Shows the updates themselves, too.',
} as const

export const tailCommand = remoteCommand(tailOperations.tailQueue, {
  sentence:
    'shows live what is pushed to a bot and confirmed, until SIGINT (Ctrl+C); it begins with the next event',
  options: [payloadsOption],
  run: (call, { id, query }) =>
    followCall(call, {
      operation: tailOperations.tailQueue,
      name: 'the tail',
      afterGap: 'what happened in between is not shown',
      inputAfter: () => ({ id, query: { ...query, payload: call.has(payloadsOption) } }),
      dataOf: tailDataOf,
      json: tailJson,
      line: (event) => tailLine(event, waitingClock.nowMs()),
    }),
})
