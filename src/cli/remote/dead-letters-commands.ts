/** `postbote dead-letters`: lists, shows, replays and drops updates that the webhook of a bot did not take. */
import { waitingClock } from '../../clock.ts'
import { ConfigError } from '../../config/config.ts'
import { onOff, wholeNumber } from '../../config/config-values.ts'
import { updateIdMax } from '../../limits.ts'
import { listedPerPageMax } from '../../operations/limits.ts'
import { botOperations } from '../../operations/bot-operations.ts'
import type { CallResult } from '../../operations/target-of.ts'
import { deadLetterOperations } from '../../operations/dead-letter-operations.ts'
import type { ResultOf } from '../../operations/operation.ts'
import { webhookOperations } from '../../operations/webhook-operations.ts'
import type { CommandCall } from '../commands/command-call.ts'
import type { ParsedCommand } from '../commands/command-row.ts'
import { jsonOption } from '../commands/json-option.ts'
import { textTable } from '../output/text-table.ts'
import { askedQueue, testOption } from './asked-queue.ts'
import { botIdArgument } from './bot-id-argument.ts'
import { cell, timeCell } from './cells.ts'
import { fieldOption } from './field-option.ts'
import { privateApiOf, remoteOptions } from './private-api-of.ts'
import { madeResult, printResult, tableLines, tell } from './print-result.ts'
import type { RemoteApi } from './remote-api.ts'
import { type Outcome, replayOutcomes } from './replay-outcomes.ts'

const updateId = wholeNumber(1, updateIdMax)
const updateIdArgument = {
  name: '<update_id>',
  kind: updateId,
  sentence: 'Id of the dead letter.',
} as const
const oneOrAllArgument = {
  name: '[update_id]',
  kind: updateId,
  sentence: 'Id of the dead letter, unless --all is given.',
} as const
const allOption = { name: 'all', kind: onOff, sentence: 'All dead letters of the queue.' } as const
const waitOption = {
  name: 'wait',
  kind: onOff,
  sentence: 'Waits for up to a minute and says what became of the updates.',
} as const
const afterOption = fieldOption(deadLetterOperations.listDeadLetters, 'after', {
  sentence: 'Lists only dead letters with larger ids than this one.',
})
const limitOption = fieldOption(deadLetterOperations.listDeadLetters, 'limit', {
  sentence: 'Lists this many dead letters at most.',
})

export const deadLettersCommands: readonly ParsedCommand[] = [
  {
    kind: 'parsed',
    name: 'dead-letters list',
    sentence: 'lists the dead letters of a bot in the order of their ids',
    arguments: [botIdArgument],
    options: [afterOption, limitOption, testOption, ...remoteOptions],
    run: list,
  },
  {
    kind: 'parsed',
    name: 'dead-letters show',
    sentence: 'shows a dead letter with its update',
    arguments: [botIdArgument, updateIdArgument],
    options: [testOption, ...remoteOptions],
    run: show,
  },
  {
    kind: 'parsed',
    name: 'dead-letters replay',
    sentence: 'pushes a dead letter again, or all, the oldest first',
    arguments: [botIdArgument, oneOrAllArgument],
    options: [allOption, waitOption, testOption, ...remoteOptions],
    run: replay,
  },
  {
    kind: 'parsed',
    name: 'dead-letters drop',
    sentence: 'drops a dead letter, or all',
    arguments: [botIdArgument, oneOrAllArgument],
    options: [allOption, testOption, ...remoteOptions],
    run: drop,
  },
]

type DeadLetterPage = ResultOf<typeof deadLetterOperations.listDeadLetters>

async function list(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const asked = askedQueue(call, { after: call.get(afterOption), limit: call.get(limitOption) })
  const result = await api.call(deadLetterOperations.listDeadLetters, asked)
  printResult(call, result, pageLines)
  const { dead_letters: letters, total } = result.value
  const shown = letters.length
  if (shown === call.need(limitOption) && total > shown && !call.has(jsonOption)) {
    tell(`there may be more: --after ${letters.at(-1)?.update_id}`)
  }
}

function pageLines({ dead_letters: deadLetters, total }: DeadLetterPage): readonly string[] {
  if (deadLetters.length === 0) return [total === 0 ? 'no dead letters' : 'no more dead letters']
  const table = tableLines({
    head: ['update_id', 'type', 'key', 'reason', 'time', 'attempts', 'bytes', 'last_error'],
    rows: deadLetters.map((each) => [
      cell(each.update_id),
      cell(each.type),
      cell(each.ordering_key),
      cell(each.reason),
      timeCell(each.time),
      cell(each.attempts),
      cell(each.bytes),
      cell(each.last_error),
    ]),
  })
  return [...table, `${deadLetters.length} of ${total} dead letters`]
}

async function show(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const asked = { ...askedQueue(call, {}), update_id: call.need(updateIdArgument) }
  const result = await api.call(deadLetterOperations.getDeadLetter, asked)
  printResult(call, result, (each) => [
    ...textTable({
      head: ['field', 'value'],
      rows: [
        ['update_id', cell(each.update_id)],
        ['type', cell(each.type)],
        ['ordering_key', cell(each.ordering_key)],
        ['reason', cell(each.reason)],
        ['accepted', timeCell(each.accepted)],
        ['time', timeCell(each.time)],
        ['expires', timeCell(each.expires)],
        ['attempts', cell(each.attempts)],
        ['last_error', cell(each.last_error)],
      ],
    }),
    '',
    updateIn(result.text),
  ])
}

/** The update as it was pushed: parsing could change a large number. It is the last field of the response. */
function updateIn(response: string): string {
  const mark = ',"update":'
  return response.slice(response.indexOf(mark) + mark.length, -1)
}

/** If one dead letter was replayed, its new id; if all were asked for, those that were replayed. */
interface Replayed extends Partial<Outcome>, Partial<ReplayedOne> {
  readonly replayed?: readonly (ReplayedAll['replayed'][number] & Partial<Outcome>)[]
  readonly stopped?: ReplayedAll['stopped']
}

type ReplayedOne = ResultOf<typeof deadLetterOperations.replayDeadLetter>
type ReplayedAll = ResultOf<typeof deadLetterOperations.replayDeadLetters>

async function replay(call: CommandCall): Promise<void> {
  const chosen = choiceOf(call, 'replay')
  const api = await privateApiOf(call)
  const queue = askedQueue(call, {})
  const result: CallResult & { readonly value: Replayed } =
    chosen === undefined
      ? await api.call(deadLetterOperations.replayDeadLetters, queue)
      : await api.call(deadLetterOperations.replayDeadLetter, { ...queue, update_id: chosen })
  const told = call.has(waitOption)
    ? madeResult(await withOutcomes(call, api, result.value))
    : result
  printResult(call, told, (each: Replayed) => replayLines(each, chosen))
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
  call: CommandCall,
  api: RemoteApi,
  result: Replayed,
): Promise<Replayed> {
  const ids = result.replayed?.map((each) => each.new_update_id) ?? [result.update_id ?? 0]
  const after = Math.max(0, Math.min(...ids) - 1)
  const outcomes = await replayOutcomes(ids, waitingClock, async () => {
    const { value: bot } = await api.call(botOperations.getBot, { id: call.need(botIdArgument) })
    const { pending, mode } = call.has(testOption) ? bot.test : bot
    // After the number of pending updates, so that an update that leaves now is not missing everywhere.
    const attempts = await api.call(webhookOperations.listAttempts, askedQueue(call, {}))
    const page = askedQueue(call, { after, limit: listedPerPageMax })
    const letters = await api.call(deadLetterOperations.listDeadLetters, page)
    const { dead_letters: deadLetters } = letters.value
    return { attempts: attempts.value.attempts, deadLetters, pending, mode }
  })
  if (result.replayed === undefined) return { ...result, ...outcomes.get(ids[0] ?? 0) }
  const replayed = result.replayed.map((each) => ({ ...each, ...outcomes.get(each.new_update_id) }))
  return { ...result, replayed }
}

function replayLines(result: Replayed, chosen: number | undefined): readonly string[] {
  const pairs =
    result.replayed ??
    (chosen === undefined
      ? []
      : [{ ...result, update_id: chosen, new_update_id: result.update_id ?? 0 }])
  if (pairs.length === 0) return ['no dead letters']
  const hasOutcomes = pairs.some(({ outcome }) => outcome !== undefined)
  return tableLines({
    head: ['update_id', 'new_update_id', ...(hasOutcomes ? ['outcome', 'detail'] : [])],
    rows: pairs.map(({ update_id: before, new_update_id: after, outcome, detail }) => [
      cell(before),
      cell(after),
      ...(hasOutcomes ? [cell(outcome ?? null), cell(detail ?? null)] : []),
    ]),
  })
}

async function drop(call: CommandCall): Promise<void> {
  const chosen = choiceOf(call, 'drop')
  const api = await privateApiOf(call)
  const queue = askedQueue(call, {})
  if (chosen === undefined) {
    const dropped = await api.call(deadLetterOperations.dropDeadLetters, queue)
    printResult(call, dropped, ({ removed }) => [`dropped ${removed} dead letters`])
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
