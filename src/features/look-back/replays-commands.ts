/** `postbote updates replay` and `postbote replays`: pushes updates again that have left a queue, and follows the jobs that do so. */
import type { ResultOf } from '../../api/operation.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { printResult } from '../../cli/output/print-result.ts'
import { privateApiOf } from '../../cli/remote/private-api-of.ts'
import {
  anyValue,
  fieldOption,
  remoteCommand,
  updateIdArgument,
  updateTypeOption,
} from '../../cli/remote/remote-command.ts'
import { resultLines } from '../../cli/remote/result-lines.ts'
import { ConfigError } from '../../config/config.ts'
import { onOff } from '../../config/config-values.ts'
import { counted } from '../../kit/text/counted.ts'
import type { LeftState } from '../../shard/records/replay-record.ts'
import { replayOperations } from './replay-operations.ts'

const { startReplay, replayUpdate, listReplays, getReplay, cancelReplay } = replayOperations

const oneArgument = {
  name: '[update_id]',
  kind: updateIdArgument.kind,
  sentence: 'Id of the update, to deliver this one alone again and at once.',
} as const
const allOption = {
  name: 'all',
  kind: onOff,
  sentence: 'All updates that have left and are kept.',
} as const
const stateOption = {
  ...fieldOption<LeftState>(startReplay, 'state', anyValue),
  name: 'left-state',
} as const
const typeOption = updateTypeOption(startReplay)

export const replaysCommands: readonly ParsedCommand[] = [
  remoteCommand(startReplay, {
    sentence:
      'delivers an update again that has left its queue, or starts a job that delivers many',
    arguments: [oneArgument],
    fields: {
      ordering_key: anyValue,
      since: anyValue,
      until: { defaultShown: 'now' },
      rate: {},
      dry_run: { sentence: 'Only counts the updates.' },
      idempotency_key: {
        defaultShown: 'none',
        sentence: 'A call that is repeated with this key starts one job.',
      },
    },
    options: [stateOption, typeOption, allOption],
    async run(call, { body, ...of }) {
      const updateId = call.get(oneArgument)
      const { rate, dry_run: isDry, idempotency_key: key, ...times } = body ?? {}
      const selection = { ...times, state: call.get(stateOption), type: call.get(typeOption) }
      const hasSelection = Object.values(selection).some((value) => value !== undefined)
      const ways = [updateId !== undefined, hasSelection, call.has(allOption)]
      // A forgotten id must not select all of them.
      if (ways.filter(Boolean).length !== 1 || (updateId !== undefined && isDry === true)) {
        throw new ConfigError([
          'updates replay: expected an update_id, options that select updates, or --all',
        ])
      }
      const api = await privateApiOf(call)
      if (updateId !== undefined) {
        const one = await api.call(replayUpdate, { ...of, update_id: updateId })
        printResult(call, one, (pushed) => [
          'filtered' in pushed
            ? 'filtered: the bot does not want updates of this type'
            : `update ${updateId} is delivered again as ${pushed.update_id}`,
        ])
        return
      }
      const order = { ...selection, rate: rate ?? 1, dry_run: isDry === true, idempotency_key: key }
      const result = await api.call(startReplay, { ...of, body: order })
      printResult(call, result, (started, view) =>
        'dry_run' in started ? [countLine(started)] : resultLines(startReplay, started, view),
      )
    },
  }),
  remoteCommand(listReplays),
  remoteCommand(getReplay),
  remoteCommand(cancelReplay),
]

function countLine({
  count,
  bytes,
  is_complete: isComplete,
}: Extract<ResultOf<typeof startReplay>, { readonly dry_run: true }>): string {
  const found = `${counted(count, 'update')} of ${counted(bytes, 'byte')} would be delivered again`
  return isComplete ? found : `${found}, and more: the count has ended after 10 s`
}
