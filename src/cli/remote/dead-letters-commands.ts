/** `postbote dead-letters`: lists, shows, replays and drops updates that the webhook of a bot did not take. */
import { waitingClock } from '../../clock.ts'
import { ConfigError } from '../../config/config.ts'
import { onOff, wholeNumber } from '../../config/config-values.ts'
import { updateIdMax } from '../../limits.ts'
import { listedPerPageMax } from '../../operations/limits.ts'
import type { CommandCall } from '../command-call.ts'
import type { ParsedCommand } from '../command-row.ts'
import { jsonOption } from '../json-option.ts'
import { textTable } from '../text-table.ts'
import { botIdArgument } from './bot-id-argument.ts'
import { cell, timeCell } from './cells.ts'
import type { PrivateApiClient } from '../private-api-client.ts'
import { privateApiOf, remoteOptions } from './private-api-of.ts'
import { printResult, tableLines, tell } from './print-result.ts'
import { queuePath, testOption } from './queue-path.ts'
import { type Outcome, type QueueAnswers, replayOutcomes } from './replay-outcomes.ts'

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
const afterOption = {
  name: 'after',
  kind: wholeNumber(0, updateIdMax),
  default: '0',
  sentence: 'Lists only dead letters with larger ids than this one.',
} as const
const limitOption = {
  name: 'limit',
  kind: wholeNumber(1, listedPerPageMax),
  default: '100',
  sentence: 'Lists this many dead letters at most.',
} as const

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

interface DeadLetter {
  readonly update_id: number
  readonly type: string
  readonly ordering_key: string
  readonly reason: string
  readonly accepted: number
  readonly time: number
  readonly expires: number
  readonly attempts: number
  readonly last_error: string | null
  readonly bytes: number
}

interface DeadLetterPage {
  readonly dead_letters: readonly DeadLetter[]
  readonly total: number
}

async function list(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const path = queuePath(call, 'dead-letters', {
    after: call.get(afterOption),
    limit: call.get(limitOption),
  })
  const response = await api.call({ method: 'GET', path })
  printResult(call, response, pageLines)
  const page: DeadLetterPage = JSON.parse(response)
  const shown = page.dead_letters.length
  if (shown === call.need(limitOption) && page.total > shown && !call.has(jsonOption)) {
    tell(`there may be more: --after ${page.dead_letters.at(-1)?.update_id}`)
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
  const path = queuePath(call, `dead-letters/${call.need(updateIdArgument)}`)
  const response = await api.call({ method: 'GET', path })
  printResult(call, response, (each: DeadLetter) => [
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
    updateIn(response),
  ])
}

/** The update as it was pushed: parsing could change a large number. It is the last field of the response. */
function updateIn(response: string): string {
  const mark = ',"update":'
  return response.slice(response.indexOf(mark) + mark.length, -1)
}

interface ReplayedLetter extends Partial<Outcome> {
  readonly update_id: number
  readonly new_update_id: number
}

interface Replayed extends Partial<Outcome> {
  /** If one dead letter was replayed: the new id. */
  readonly update_id?: number
  /** If all were asked for. */
  readonly replayed?: readonly ReplayedLetter[]
  readonly stopped?: {
    readonly update_id: number
    readonly code: string
    readonly message: string
  }
}

async function replay(call: CommandCall): Promise<void> {
  const chosen = choiceOf(call, 'replay')
  const api = await privateApiOf(call)
  const path = queuePath(call, `${pathOf(chosen)}/replay`)
  const response = await api.call({ method: 'POST', path })
  const result: Replayed = JSON.parse(response)
  const told = call.has(waitOption) ? await withOutcomes(call, api, result) : result
  printResult(call, told === result ? response : JSON.stringify(told), (each: Replayed) =>
    replayLines(each, chosen),
  )
  const { stopped } = result
  const lettersTold = told.replayed ?? [told]
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
  api: PrivateApiClient,
  result: Replayed,
): Promise<Replayed> {
  const ids = result.replayed?.map((each) => each.new_update_id) ?? [result.update_id ?? 0]
  const after = Math.max(0, Math.min(...ids) - 1)
  const get = async <Answer>(path: string): Promise<Answer> =>
    JSON.parse(await api.call({ method: 'GET', path }))
  const outcomes = await replayOutcomes(ids, waitingClock, async () => {
    type Queue = Pick<QueueAnswers, 'pending' | 'mode'>
    const bot: Queue & { readonly test: Queue } = await get(`/v1/bots/${call.need(botIdArgument)}`)
    const { pending, mode } = call.has(testOption) ? bot.test : bot
    // After the number of pending updates, so that an update that leaves now is not missing everywhere.
    const { attempts }: Pick<QueueAnswers, 'attempts'> = await get(queuePath(call, 'attempts'))
    const letters = queuePath(call, 'dead-letters', { after, limit: listedPerPageMax })
    const { dead_letters: deadLetters }: DeadLetterPage = await get(letters)
    return { attempts, deadLetters, pending, mode }
  })
  if (result.replayed === undefined) return { ...result, ...outcomes.get(ids[0] ?? 0) }
  const replayed = result.replayed.map((each) => ({ ...each, ...outcomes.get(each.new_update_id) }))
  return { ...result, replayed }
}

function pathOf(chosen: number | undefined): string {
  return chosen === undefined ? 'dead-letters' : `dead-letters/${chosen}`
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
  const path = queuePath(call, pathOf(chosen))
  const response = await api.call({ method: 'DELETE', path })
  printResult(call, response, ({ removed }: { readonly removed: number | boolean }) => [
    chosen === undefined ? `dropped ${Number(removed)} dead letters` : `dropped ${chosen}`,
  ])
}

/** Returns the id of one dead letter, or undefined for all: a forgotten id must not select all of them. */
function choiceOf(call: CommandCall, action: string): number | undefined {
  const chosen = call.get(oneOrAllArgument)
  if ((chosen === undefined) === call.has(allOption)) return chosen
  throw new ConfigError([`dead-letters ${action}: expected either an update_id or --all`])
}
