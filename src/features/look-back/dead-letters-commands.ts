/** `postbote dead-letters`: lists, shows, replays and drops updates that the webhook of a bot did not take. */
import { listedPerPageMax } from '../../api/limits.ts'
import type { ResultOf } from '../../api/operation.ts'
import type { CallResult, InputOf } from '../../api/target-of.ts'
import { updateIn } from '../../api/update-in.ts'
import * as is from '../../api/words.ts'
import type { CommandCall } from '../../cli/commands/command-call.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { madeResult, printResult, tell, tellMore } from '../../cli/output/print-result.ts'
import type { View } from '../../cli/output/view.ts'
import { fieldNames } from '../../cli/remote/cells.ts'
import { botIdOf } from '../../cli/remote/id-of.ts'
import { privateApiOf } from '../../cli/remote/private-api-of.ts'
import type { RemoteApi } from '../../cli/remote/remote-api.ts'
import {
  anyValue,
  botIdArgument,
  printCall,
  remoteCommand,
  testOption,
  updateIdArgument,
  updateTypeOption,
} from '../../cli/remote/remote-command.ts'
import { resultLines, shownList } from '../../cli/remote/result-lines.ts'
import { ConfigError } from '../../config/config.ts'
import { onOff } from '../../config/config-values.ts'
import { waitingClock } from '../../kit/clock.ts'
import { counted } from '../../kit/text/counted.ts'
import { needs as bots } from '../bots/needs.ts'
import { deadLetterOperations } from './dead-letter-operations.ts'
import { type Outcome, replayOutcomes } from './replay-outcomes.ts'

const oneOrAllArgument = {
  name: '[update_id]',
  kind: updateIdArgument.kind,
  sentence: 'Id of the dead letter, unless --all is given.',
} as const
const oneOrAllBotsArgument = {
  name: '[bot_id]',
  kind: botIdArgument.kind,
  sentence: 'Id or @username of a bot; without it, all bots.',
} as const
const allOption = { name: 'all', kind: onOff, sentence: 'All dead letters of the queue.' } as const
const waitOption = {
  name: 'wait',
  kind: onOff,
  sentence: 'Waits for up to a minute and says what became of the updates.',
} as const

const typeOption = updateTypeOption(deadLetterOperations.replayDeadLetters)

const groupFields = {
  reason: anyValue,
  error: { ...anyValue, sentence: 'Selects the class of last errors that `reasons` names.' },
} as const

export const deadLettersCommands: readonly ParsedCommand[] = [
  {
    ...remoteCommand(deadLetterOperations.sumAllDeadLetters, {
      sentence: 'shows why dead letters are dead, of a bot or of all, the most first',
      arguments: [oneOrAllBotsArgument],
      options: [testOption],
      run: sum,
    }),
    isUsual: true,
  },
  remoteCommand(deadLetterOperations.listDeadLetters, {
    otherwise: 'postbote dead-letters reasons shows those of all bots',
    fields: {
      after: { sentence: 'Lists only dead letters with larger ids than this one.' },
      limit: { sentence: 'Lists this many dead letters at most.' },
      ...groupFields,
    },
    async run(call, input) {
      const api = await privateApiOf(call)
      const result = await api.call(deadLetterOperations.listDeadLetters, input)
      printCall(call, deadLetterOperations.listDeadLetters, result, input)
      const { dead_letters: letters, total } = result.value
      const shown = letters.length
      if (shown === input.query?.limit && total > shown) {
        tellMore(call, `there may be more: --after ${letters.at(-1)?.update_id}`)
      }
    },
  }),
  remoteCommand(deadLetterOperations.getDeadLetter, {
    sentence: 'shows a dead letter with its update',
    async run(call, input) {
      const api = await privateApiOf(call)
      const result = await api.call(deadLetterOperations.getDeadLetter, input)
      printResult(call, result, ({ update: _update, bytes: _bytes, ...fields }, view) => [
        ...resultLines(deadLetterOperations.getDeadLetter, fields, view),
        '',
        updateIn(result.text),
      ])
    },
  }),
  remoteCommand(deadLetterOperations.replayDeadLetters, {
    sentence: 'delivers a dead letter again, or all, the oldest first',
    arguments: [oneOrAllArgument],
    fields: {
      ordering_key: anyValue,
      since: anyValue,
      until: { defaultShown: 'now' },
      ...groupFields,
    },
    options: [typeOption, allOption, waitOption],
    run: replay,
  }),
  remoteCommand(deadLetterOperations.dropDeadLetters, {
    sentence: 'drops a dead letter, or all',
    arguments: [oneOrAllArgument],
    options: [allOption],
    run: drop,
  }),
]

async function sum(call: CommandCall): Promise<void> {
  const bot = call.get(oneOrAllBotsArgument)
  const { sumDeadLetters } = deadLetterOperations
  if (bot === undefined) return sumAll(call)
  const api = await privateApiOf(call)
  const id = await botIdOf(call, bot)
  const input = { id, query: { test: call.has(testOption) } }
  printCall(call, sumDeadLetters, await api.call(sumDeadLetters, input), input)
}

/** The groups say what to ask for next: a bot and its reason. */
async function sumAll(call: CommandCall): Promise<void> {
  const { sumAllDeadLetters } = deadLetterOperations
  const result = await (await privateApiOf(call)).call(sumAllDeadLetters, {})
  printCall(call, sumAllDeadLetters, result, {})
  const [worst] = result.value.groups
  const [queue] = worst?.queues ?? []
  if (worst === undefined || queue === undefined) return
  const test = queue.test ? ' --test' : ''
  tellMore(
    call,
    `next: postbote dead-letters list ${queue.bot_id}${test} --reason ${worst.reason} (each of them), postbote dead-letters replay ${queue.bot_id}${test} --all --reason ${worst.reason} (deliver them again)`,
  )
}

/** If one dead letter was replayed, its new id; if all were asked for, those that were replayed. */
interface Replayed extends Partial<Outcome>, Partial<ReplayedOne> {
  readonly replayed?: readonly (ReplayedAll['replayed'][number] & Partial<Outcome>)[]
  readonly stopped?: ReplayedAll['stopped']
}

/** The input of a call about all dead letters of a queue. */
type AskedQueue = InputOf<typeof deadLetterOperations.dropDeadLetters>
type ReplayedOne = ResultOf<typeof deadLetterOperations.replayDeadLetter>
type ReplayedAll = ResultOf<typeof deadLetterOperations.replayDeadLetters>

async function replay(
  call: CommandCall,
  { body, ...queue }: InputOf<typeof deadLetterOperations.replayDeadLetters>,
): Promise<void> {
  const chosen = choiceOf(call, 'replay')
  const selection = { ...body, type: call.get(typeOption) }
  if (chosen !== undefined && Object.values(selection).some((value) => value !== undefined)) {
    throw new ConfigError(['dead-letters replay: expected options that select only with --all'])
  }
  const api = await privateApiOf(call)
  const result: CallResult & { readonly value: Replayed } =
    chosen === undefined
      ? await api.call(deadLetterOperations.replayDeadLetters, { ...queue, body: selection })
      : await api.call(deadLetterOperations.replayDeadLetter, { ...queue, update_id: chosen })
  const told = call.has(waitOption)
    ? madeResult(await withOutcomes(api, queue, result.value))
    : result
  printResult(call, told, (each: Replayed, view) => replayLines(each, chosen, view))
  const { stopped } = result.value
  const lettersTold = told.value.replayed ?? [told.value]
  if (lettersTold.some(({ outcome }) => outcome === 'waits' || outcome === 'dead letter')) {
    process.exitCode = 1
  }
  if (stopped === undefined) return
  tell(`stopped at dead letter ${stopped.update_id}: ${stopped.code}: ${stopped.message}`)
  process.exitCode = 1
}

/** Waits for what becomes of the updates, and adds it to the result. */
async function withOutcomes(
  api: RemoteApi,
  queue: AskedQueue,
  result: Replayed,
): Promise<Replayed> {
  const ids = result.replayed?.map((each) => each.new_update_id) ?? [result.update_id ?? 0]
  const after = Math.max(0, Math.min(...ids) - 1)
  const outcomes = await replayOutcomes(ids, waitingClock, async () => {
    const { value: bot } = await api.call(bots.getBot, { id: queue.id })
    const { pending, mode } = queue.query?.test === true ? bot.test : bot
    // After the number of pending updates, so that an update that leaves now is not missing everywhere.
    const attempts = await api.call(bots.listAttempts, queue)
    const page = { ...queue, query: { ...queue.query, after, limit: listedPerPageMax } }
    const letters = await api.call(deadLetterOperations.listDeadLetters, page)
    const { dead_letters: deadLetters } = letters.value
    return { attempts: attempts.value.attempts, deadLetters, pending, mode }
  })
  if (result.replayed === undefined) return { ...result, ...outcomes.get(ids[0] ?? 0) }
  const replayed = result.replayed.map((each) => ({ ...each, ...outcomes.get(each.new_update_id) }))
  return { ...result, replayed }
}

const replayedItem = is.object({
  update_id: is.updateId(),
  new_update_id: is.updateId(),
  outcome: is.optional(is.text()),
  detail: is.optional(is.reason()),
})

function replayLines(result: Replayed, chosen: number | undefined, view: View): readonly string[] {
  const pairs =
    result.replayed ??
    (chosen === undefined
      ? []
      : [{ ...result, update_id: chosen, new_update_id: result.update_id ?? 0 }])
  const list = { item: replayedItem, items: pairs, columns: fieldNames(replayedItem) }
  return shownList(list, view.inner, 'no dead letters')
}

async function drop(call: CommandCall, queue: AskedQueue): Promise<void> {
  const chosen = choiceOf(call, 'drop')
  const api = await privateApiOf(call)
  if (chosen === undefined) {
    const dropped = await api.call(deadLetterOperations.dropDeadLetters, queue)
    printResult(call, dropped, ({ removed }) => [`dropped ${counted(removed, 'dead letter')}`])
  } else {
    const asked = { ...queue, update_id: chosen }
    const dropped = await api.call(deadLetterOperations.dropDeadLetter, asked)
    printResult(call, dropped, () => [`dropped ${chosen}`])
  }
}

/** Returns the id of one dead letter, or undefined for all: a forgotten id must not select all of them. */
function choiceOf(call: CommandCall, action: string): number | undefined {
  const chosen = call.get(oneOrAllArgument)
  if ((chosen === undefined) === call.has(allOption)) return chosen
  throw new ConfigError([`dead-letters ${action}: expected either an update_id or --all`])
}
