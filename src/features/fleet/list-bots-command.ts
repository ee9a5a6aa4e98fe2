/** `postbote bots list`: the bots of the server, all or those in a state, with what operators look for. */
import { ConfigError } from '../../config/config.ts'
import { type Kind, onOff, refused, wholeNumber } from '../../config/config-values.ts'
import { fleetOperations } from './fleet-operations.ts'
import type { QueryOf, ResultOf } from '../../api/operation.ts'
import { listedPerPageMax } from '../../api/limits.ts'
import type { CommandCall } from '../../cli/commands/command-call.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { madeResult, printResult, tellIncomplete, tellMore } from '../../cli/output/print-result.ts'
import type { View } from '../../cli/output/view.ts'
import { nextStepsOfAll } from '../../cli/next-steps.ts'
import { ProgressBar } from '../../cli/output/progress-bar.ts'
import { privateApiOf } from '../../cli/remote/private-api-of.ts'
import { CallRefusedError, type RemoteApi } from '../../cli/remote/remote-api.ts'
import { remoteCommand } from '../../cli/remote/remote-command.ts'
import { resultLines } from '../../cli/remote/result-lines.ts'

/** This many bots are listed at most. Chosen: their JSON fits into the memory of a command. */
const botsListedMax = 1_000_000

const namePart: Kind<string> = {
  expected: '1 to 64 letters, digits or underscores',
  placeholder: 'TEXT',
  parse: (text) => (/^[A-Za-z0-9_]{1,64}$/.test(text) ? text : refused),
}
const searched: Kind<string> = {
  expected: '1 to 64 characters',
  placeholder: 'TEXT',
  parse: (text) => (text.length > 0 && text.length <= 64 ? text : refused),
}
const limitOption = {
  name: 'limit',
  kind: wholeNumber(1, botsListedMax),
  default: '100',
  sentence: `Lists this many bots at most. With --sort, ${listedPerPageMax} at most.`,
} as const

/** What needs attention, the worst first. What two clients poll is degraded after a minute, and is listed once. */
const problemStates = ['failing', 'unpolled', 'conflict', 'degraded', 'behind'] as const
const problemsOption = {
  name: 'problems',
  kind: onOff,
  sentence:
    'Lists only bots that need attention, the worst first: failing ones, those that nobody polls or two clients poll at once, degraded ones, and those that are behind.',
} as const

export const listBotsCommand: ParsedCommand = remoteCommand(fleetOperations.listBots, {
  sentence: 'lists the bots, all or those in a state, with the state of their main queues',
  fields: {
    state: { defaultShown: 'all bots', sentence: 'Lists only bots in this state.' },
    sort: {
      defaultShown: 'by id',
      sentence:
        'Lists the bots with the most pending updates, with the oldest one, or with the most dead letters, first.',
    },
    prefix: { kind: namePart, sentence: 'Lists only bots whose id or username begins with this.' },
    search: {
      kind: searched,
      sentence:
        "Lists only bots whose id, username, or a word of whose first name or webhook's host begins with this, in any case.",
    },
    after: { sentence: 'Lists only bots with larger ids than this one.' },
    details: { sentence: 'Shows the dead letters and the last activity of each bot, too.' },
    limit: limitOption,
  },
  options: [problemsOption],
  run: list,
})

type BotPage = ResultOf<typeof fleetOperations.listBots>
type BotQuery = QueryOf<typeof fleetOperations.listBots>

async function list(
  call: CommandCall,
  { query: asked }: { readonly query?: Partial<BotQuery> },
): Promise<void> {
  const query = { after: 0, ...asked, limit: call.need(limitOption) }
  assertSortable(query)
  if (call.has(problemsOption)) {
    await listProblems(call, query)
    return
  }
  const result = await readBots(await privateApiOf(call), query)
  const { bots } = result
  printResult(call, madeResult(result), botLines)
  if (query.state !== undefined) tellNext(call, bots)
  tellIncomplete(result)
  if (bots.length < query.limit) return
  tellMore(
    call,
    query.sort === undefined
      ? `there may be more bots: --after ${bots.at(-1)?.bot_id}`
      : 'there may be more bots: raise --limit',
  )
}

/** Asks for each state: the server has no order of states. Of a state, those with the oldest updates come first. */
async function listProblems(call: CommandCall, query: BotQuery): Promise<void> {
  if (query.state !== undefined || query.sort !== undefined || query.after > 0) {
    throw new ConfigError(['--problems: expected none of --state, --sort and --after with it'])
  }
  const api = await privateApiOf(call)
  const limit = Math.min(query.limit, listedPerPageMax)
  const pages = await Promise.all(
    problemStates.map((state) => readState(api, { ...query, state, limit })),
  )
  const byId = new Map<number, BotPage['bots'][number]>()
  for (const bot of pages.flatMap(({ bots }) => bots)) {
    if (!byId.has(bot.bot_id)) byId.set(bot.bot_id, bot)
  }
  const result = joinedPages([...byId.values()].slice(0, limit), pages)
  printResult(call, madeResult(result), ({ bots }, view) =>
    bots.length === 0 && result.missing_shards === undefined && view.form === 'table'
      ? ['no bot needs attention']
      : botLines({ bots }, view),
  )
  tellNext(call, result.bots)
  tellIncomplete(result)
  if (result.bots.length < limit) return
  const how = limit < listedPerPageMax ? 'raise --limit' : 'list each state by --state'
  tellMore(call, `there may be more bots: ${how}`)
}

function tellNext(call: CommandCall, bots: BotPage['bots']): void {
  for (const text of nextStepsOfAll(bots)) tellMore(call, text)
}

/** Those with the oldest updates first. */
async function readState(api: RemoteApi, query: BotQuery): Promise<BotPage> {
  try {
    return await readBots(api, { ...query, sort: 'oldest_age' })
  } catch (error) {
    // A server of an earlier version does not know this state, in which its bots are degraded.
    if (
      query.state === 'conflict' &&
      error instanceof CallRefusedError &&
      error.response.status === 400
    )
      return { bots: [] }
    throw error
  }
}

/** A sorted list has no next page: the server refuses `after` with `sort`, and the command cannot join pages. */
function assertSortable({ sort, after, limit }: BotQuery): void {
  if (sort === undefined) return
  const problems = [
    ...(after > 0 ? ['--after: expected none with --sort; raise --limit'] : []),
    ...(limit > listedPerPageMax
      ? [`--limit: expected at most ${listedPerPageMax} with --sort, got ${limit}`]
      : []),
  ]
  if (problems.length > 0) throw new ConfigError(problems)
}

/** Joins the pages that are needed for so many bots. */
async function readBots(api: RemoteApi, query: BotQuery): Promise<BotPage> {
  const { limit } = query
  const bar = new ProgressBar()
  const bots: BotPage['bots'][number][] = []
  const pages: BotPage[] = []
  for (let { after } = query; bots.length < limit; ) {
    const asked = Math.min(limit - bots.length, listedPerPageMax)
    const input = { query: { ...query, after, limit: asked } }
    const { value: page } = await api.call(fleetOperations.listBots, input)
    bots.push(...page.bots)
    pages.push(page)
    if (page.bots.length < asked) break
    after = bots.at(-1)?.bot_id ?? after
    if (limit > listedPerPageMax) bar.show('reading bots', bots.length, limit)
  }
  bar.clear()
  return joinedPages(bots, pages)
}

function joinedPages(bots: BotPage['bots'], pages: readonly BotPage[]): BotPage {
  const missing = new Set(pages.flatMap(({ missing_shards: shards = [] }) => shards))
  const shards = [...missing].toSorted((a, b) => a - b)
  return { bots, ...(shards.length > 0 ? { missing_shards: shards } : {}) }
}

function botLines({ bots }: BotPage, view: View): readonly string[] {
  // A bot without a webhook can be paused, too.
  const shown = bots.map((bot) => ({ ...bot, health: stateOf(bot) }))
  return resultLines(fleetOperations.listBots, { bots: shown }, view)
}

/** A conflict of polls has no word of health in its first minute, and its reason has all that is known. */
function stateOf({
  paused,
  health,
  health_reason: reason,
}: BotPage['bots'][number]): string | null {
  if (paused === true) return 'paused'
  return health ?? (reason === undefined ? null : 'conflict')
}
