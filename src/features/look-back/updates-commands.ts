/** `postbote updates`: lists, shows and removes the updates of a bot, also those that have left its queue and are kept. */
import { ConfigError } from '../../config/config.ts'
import { onOff } from '../../config/config-values.ts'
import { retentionBytesMax, retentionMsMax } from '../../kit/limits.ts'
import { lookBackOperations } from './look-back-operations.ts'
import type { ResultOf } from '../../api/operation.ts'
import { updateIn } from '../../api/update-in.ts'
import { waitText } from '../../api/wait-text.ts'
import * as is from '../../api/words.ts'
import type { UpdateState } from '../../shard/records/replay-record.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { printResult, tellMore } from '../../cli/output/print-result.ts'
import { attemptLines } from '../../cli/attempt-lines.ts'
import { privateApiOf } from '../../cli/remote/private-api-of.ts'
import {
  anyValue,
  fieldOption,
  orNone,
  printCall,
  remoteCommand,
  updateTypeOption,
} from '../../cli/remote/remote-command.ts'
import { needs as bots } from '../bots/needs.ts'
import { resultLines, underSentence } from '../../cli/remote/result-lines.ts'
import { fieldCell } from '../../cli/remote/cells.ts'
import type { View } from '../../cli/output/view.ts'
import { byteSize } from '../../config/byte-size.ts'
import { duration } from '../../config/duration.ts'

/** An option has the same values in all commands, and `--state` has those of bots. */
const stateOption = {
  ...fieldOption<UpdateState>(lookBackOperations.listUpdates, 'state', anyValue),
  name: 'update-state',
} as const
const typeOption = updateTypeOption(lookBackOperations.listUpdates)
const unchanged = { defaultShown: 'not changed' } as const
const retainOption = {
  name: 'retain',
  kind: orNone(duration({ maxMs: retentionMsMax }), null),
  ...unchanged,
  sentence: 'How long updates that have left are kept; none follows the option of the server.',
} as const
const retainBytesOption = {
  name: 'retain-bytes',
  kind: orNone(byteSize({ max: retentionBytesMax }), null),
  ...unchanged,
  sentence: 'How much of them is kept at most; none follows the option of the server.',
} as const

const yesOption = {
  name: 'yes',
  kind: onOff,
  sentence: 'Confirms that the payloads are erased. Required.',
} as const

export const updatesCommands: readonly ParsedCommand[] = [
  remoteCommand(lookBackOperations.listUpdates, {
    sentence: 'lists the updates of a bot: those that wait, and those that are kept',
    fields: {
      ordering_key: anyValue,
      user: { ...anyValue, sentence: 'Selects what names this user or chat.' },
      since: anyValue,
      until: anyValue,
      after: { sentence: 'Lists only updates with larger ids than this one.' },
      before: {
        defaultShown: 'the oldest come first',
        sentence: 'Lists only updates with smaller ids than this one, the newest first.',
      },
      limit: { sentence: 'Lists this many at most.' },
    },
    options: [stateOption, typeOption],
    async run(call, input) {
      const api = await privateApiOf(call)
      const query = { ...input.query, state: call.get(stateOption), type: call.get(typeOption) }
      const result = await api.call(lookBackOperations.listUpdates, { ...input, query })
      const { next, ...page } = result.value
      printResult(call, result, (_, view) =>
        resultLines(lookBackOperations.listUpdates, page, view),
      )
      if (next === null) return
      const way = input.query?.before === undefined ? 'after' : 'before'
      tellMore(call, `there may be more: --${way} ${next}`)
    },
  }),
  remoteCommand(lookBackOperations.getUpdate, {
    sentence: 'shows an update, what became of it, and its attempts',
    async run(call, input) {
      const api = await privateApiOf(call)
      const result = await api.call(lookBackOperations.getUpdate, input)
      printResult(
        call,
        result,
        (
          { update: _update, bytes: _bytes, latest_attempts: attempts, waits_for, ...fields },
          view,
        ) => [
          ...waitLines({ ...fields, waits_for }, view),
          ...resultLines(lookBackOperations.getUpdate, fields, view),
          ...(attempts.length === 0
            ? []
            : ['', ...attemptLines({ attempts, columns: bots.listAttempts.columns }, view.inner)]),
          '',
          updateIn(result.text),
        ],
      )
    },
  }),
  remoteCommand(lookBackOperations.dropUpdate),
  remoteCommand(lookBackOperations.eraseUpdates, {
    fields: { ordering_key: { defaultShown: 'none' }, user: { defaultShown: 'none' } },
    options: [yesOption],
    async run(call, input) {
      if (!call.has(yesOption)) {
        throw new ConfigError([
          `updates erase: expected --yes, because what is erased of bot ${input.id} cannot be restored`,
        ])
      }
      const api = await privateApiOf(call)
      printResult(call, await api.call(lookBackOperations.eraseUpdates, input), erasedLines)
    },
  }),
  remoteCommand(lookBackOperations.getRetention, {
    sentence: 'shows how much is kept of updates that have left a bot, or sets it',
    options: [retainOption, retainBytesOption],
    async run(call, input) {
      const api = await privateApiOf(call)
      const { getRetention, setRetention } = lookBackOperations
      const [ms, bytes] = [call.get(retainOption), call.get(retainBytesOption)]
      let result = await api.call(getRetention, input)
      if (ms !== undefined || bytes !== undefined) {
        const { retain, retain_bytes: before } = result.value
        const seconds = typeof ms === 'number' ? ms / 1_000 : ms
        const body = {
          retain: seconds === undefined ? retain : seconds,
          retain_bytes: bytes === undefined ? before : bytes,
        }
        result = await api.call(setRetention, { ...input, body })
      }
      printCall(call, getRetention, result, input)
    },
  }),
]

/** Returns why an update waits, above what is known of it. */
function waitLines(update: Parameters<typeof waitText>[0], view: View): readonly string[] {
  const wait = waitText(update)
  if (wait === undefined) return []
  const { before, behind = '', after, nextAttempt } = wait
  const next =
    nextAttempt === undefined
      ? ''
      : `; next attempt ${fieldCell(is.preciseTime(''), nextAttempt, view.nowMs)}`
  return underSentence(`${before}${behind}${after}${next}.`, view, [])
}

function erasedLines({
  removed,
  types,
  files,
  ...rest
}: ResultOf<typeof lookBackOperations.eraseUpdates>): readonly string[] {
  const counts = Object.entries({ ...removed, ...rest })
  return [
    ...counts.map(([what, count]) => `erased ${count} ${what}`),
    ...types.map(({ type, count }) => `of them, ${count} ${type}`),
    ...files.map((file) => `removed shards/${file}`),
  ]
}
