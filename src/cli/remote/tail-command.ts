/** `postbote tail`: shows live what happens to a queue of a bot. */
import { waitingClock } from '../../clock.ts'
import { onOff } from '../../config/config-values.ts'
import { updateOperations } from '../../operations/update-operations.ts'
import type { CommandCall } from '../commands/command-call.ts'
import type { ParsedCommand } from '../commands/command-row.ts'
import { jsonOption } from '../commands/json-option.ts'
import { printJsonLine } from '../output/print-json.ts'
import { tailIdleMsMax } from '../limits.ts'
import { askedQueue, testOption } from './asked-queue.ts'
import { botIdArgument } from './bot-id-argument.ts'
import { followTail } from './follow-tail.ts'
import { tell } from './print-result.ts'
import { privateApiOf, remoteOptions } from './private-api-of.ts'
import { untilInterrupted } from './until-interrupted.ts'
import { tailJson, tailLine } from './tail-line.ts'

const payloadsOption = {
  name: 'payloads',
  kind: onOff,
  sentence: 'Shows the updates themselves, too.',
} as const

export const tailCommand: ParsedCommand = {
  kind: 'parsed',
  name: 'tail',
  sentence:
    'shows live what is pushed to a bot and confirmed, until SIGINT (Ctrl+C); it begins with the next event',
  arguments: [botIdArgument],
  options: [payloadsOption, testOption, ...remoteOptions],
  run: tail,
}

async function tail(call: CommandCall): Promise<void> {
  const asked = askedQueue(call, { payload: call.has(payloadsOption) })
  const isJson = call.has(jsonOption)
  const api = await privateApiOf(call)
  await untilInterrupted((signal) =>
    followTail({
      clock: waitingClock,
      signal,
      name: 'the tail',
      afterGap: 'what happened in between is not shown',
      open: () => api.follow(updateOperations.tailQueue, asked, { idleMs: tailIdleMsMax, signal }),
      onEvent: (event) => {
        if (isJson) printJsonLine(tailJson(event))
        else process.stdout.write(`${tailLine(event, waitingClock.nowMs())}\n`)
      },
      tell,
    }),
  )
}
