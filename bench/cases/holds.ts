/**
 * How long one deep queue blocks the event loop of its worker, and so every other bot there: 100,000 updates are pushed,
 * dropped, confirmed, read, and removed with their bot. Each operation is reported with the longest hold it caused.
 */
import type { BenchCase, CaseContext, Contestant } from '../contestant.ts'
import { type LoopHolds, watchLoops } from '../loop-watch.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { firstBotId, type RegisteredBot, ServerUnderTest } from '../server-under-test.ts'

const updates = 100_000
const updatesPerPush = 20_000

/** Does something with a bot that has 100,000 updates pending; returns the number of operations. */
type Work = (place: HeldPlace) => Promise<number>

interface HeldPlace {
  readonly server: ServerUnderTest
  readonly bot: RegisteredBot
  /** The id of the oldest pending update. */
  readonly firstId: number
}

/** The time for which a loop may be blocked, without garbage collections (loop-watch.ts). */
const busyMsMax = 20
const busyFigure = 'busy max ms'
const pushingName = 'pushed as NDJSON'

const works: readonly (readonly [string, Work])[] = [
  ['deleteWebhook, pending dropped', dropAll],
  ['an offset in the middle', skipHalf],
  ['a negative offset', skipByNegative],
  ['read in pages of 100', readAll],
  ['the bot removed', removeBot],
]

export const holdsCase: BenchCase = {
  name: 'holds',
  title: 'Event loops beside a bot with 100,000 pending updates',
  operation: 'update pushed, or removed',
  targets: [pushingName, ...works.map(([name]) => name)].map((of) => {
    return { kind: 'figure', figure: busyFigure, max: busyMsMax, of }
  }),
  isLong: true,
  async open(context) {
    const server = await ServerUnderTest.start(context, { isInspected: true })
    const take = await watchLoops(server.inspected)
    let bots = 0
    const contestants = works.map(([name, work]) =>
      contestantOf({ name, server, take, context, botId: firstBotId + bots++, work }),
    )
    const pushing = contestantOf({
      name: pushingName,
      server,
      take,
      context,
      botId: firstBotId + bots++,
      work: undefined,
    })
    return [pushing, ...contestants]
  },
}

interface HoldsParts {
  readonly name: string
  readonly server: ServerUnderTest
  readonly take: () => Promise<LoopHolds>
  readonly context: CaseContext
  readonly botId: number
  /** Without it, the pushing itself is measured. */
  readonly work: Work | undefined
}

function contestantOf({ name, server, take, botId, work }: HoldsParts): Contestant {
  return {
    name,
    profiles: server.profiles,
    async run() {
      const [bot] = await server.registerBots(1, botId)
      if (bot === undefined) throw new Error('expected a bot')
      const texts = pairsOf(botId)
      if (work === undefined) await take()
      let startMs = performance.now()
      let cpuUs = server.cpuUs()
      const [firstId = 0] = await pushAll(server, texts)
      let operations = updates
      if (work !== undefined) {
        await take()
        startMs = performance.now()
        cpuUs = server.cpuUs()
        operations = await server.profiled(() => work({ server, bot, firstId }))
      }
      const seconds = (performance.now() - startMs) / 1_000
      const endCpuUs = server.cpuUs()
      // Deletions continue after the response.
      await settled()
      const holds = await take()
      await server.private('DELETE', `/v1/bots/${botId}`).catch(() => undefined)
      await settled()
      return {
        operations,
        seconds,
        cpuUs: endCpuUs - cpuUs,
        loadCpuUs: 0,
        figures: {
          [busyFigure]: holds.busyMsMax,
          'wall max ms': holds.wallMsMax,
          'gc max ms': holds.gcMsMax,
          'over 20 ms': holds.overBound,
        },
      }
    },
  }
}

function pairsOf(botId: number): readonly string[] {
  const random = seededRandom(botId)
  const samples = Array.from({ length: 100 }, (_, chat) => sampleUpdate(random, chat))
  return Array.from({ length: updates / updatesPerPush }, () => {
    let text = ''
    for (let index = 0; index < updatesPerPush; index++) {
      text += `{"bot_id":${botId}}\n${samples[index % samples.length]}\n`
    }
    return text
  })
}

/** Returns the first id of each push. */
async function pushAll(server: ServerUnderTest, texts: readonly string[]): Promise<number[]> {
  const firstIds: number[] = []
  for (const text of texts) {
    const [firstId] = await server.pushPairs(text)
    firstIds.push(firstId ?? 0)
  }
  return firstIds
}

function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 700))
}

async function dropAll({ server, bot }: HeldPlace): Promise<number> {
  await server.botMethod(bot.token, 'deleteWebhook', { drop_pending_updates: true })
  return updates
}

async function skipHalf({ server, bot, firstId }: HeldPlace): Promise<number> {
  await server.botMethod(bot.token, 'getUpdates', { offset: firstId + updates / 2 })
  return updates / 2
}

async function skipByNegative({ server, bot }: HeldPlace): Promise<number> {
  await server.botMethod(bot.token, 'getUpdates', { offset: -10_000 })
  return updates - 10_000
}

async function readAll({ server, bot, firstId }: HeldPlace): Promise<number> {
  let offset = firstId
  for (;;) {
    const page = await server.botMethod<readonly { readonly update_id: number }[]>(
      bot.token,
      'getUpdates',
      { offset, limit: 100 },
    )
    const last = page.at(-1)
    if (last === undefined) return updates
    offset = last.update_id + 1
  }
}

async function removeBot({ server, bot }: HeldPlace): Promise<number> {
  await server.private('DELETE', `/v1/bots/${bot.botId}`)
  return updates
}
