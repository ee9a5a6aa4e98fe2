/**
 * getUpdates with timeout 0: nothing to give, and a full answer of 100 updates. One bot a connection, as bots are.
 *
 * Every poll has another raw offset than the one before, since repeated ones are held back (SPEC 5.3), but all of
 * them stand for the same place, so that nothing is confirmed and every answer is the same.
 */
import type { BenchCase, CaseContext, Contestant } from '../contestant.ts'
import { httpContestant, nginx, nodeHttp } from '../http-contestants.ts'
import type { HttpConnection } from '../http-sample.ts'
import { sampleUpdate, seededRandom, updateBytes } from '../sample-updates.ts'
import { type RegisteredBot, ServerUnderTest } from '../server-under-test.ts'

const connections = 32
const updatesPerAnswer = 100
const emptyBody = '{"ok":true,"result":[]}'

export const emptyPollCase: BenchCase = {
  name: 'poll-empty',
  title: `getUpdates with nothing to give, ${connections} connections`,
  operation: 'request',
  targets: [{ kind: 'cpuRatio', against: 'nginx return 200', max: 4 }],
  open: (context) => openPoll(context, 0),
}

export const fullPollCase: BenchCase = {
  name: 'poll-100',
  title: `getUpdates with ${updatesPerAnswer} x ${updateBytes} B to give, ${connections} connections`,
  operation: 'request',
  targets: [{ kind: 'cpuRatio', against: 'nginx return 200', max: 5 }],
  open: (context) => openPoll(context, updatesPerAnswer),
}

async function openPoll(context: CaseContext, updates: number): Promise<readonly Contestant[]> {
  const server = await ServerUnderTest.start(context)
  const plans = await plan(server, updates)
  const own = httpContestant(context, {
    name: 'postbote',
    connections: plans,
    cpuUs: () => server.cpuUs(),
    residentBytes: () => server.residentBytes(),
    profiles: server.profiles,
    profiled: (work) => server.profiled(work),
  })
  if (context.isProfiled) return [own]
  const requests = plans[0]?.requests ?? []
  const same = { connections, requests, bodyBytes: plans[0]?.bodyBytesMin ?? 0 }
  const small = { connections, requests, bodyBytes: emptyBody.length }
  return [
    own,
    await nodeHttp(context, { ...same, name: 'bare node:http' }),
    ...(await nginx(context, { ...small, name: 'nginx return 200' })),
    ...(updates === 0 ? [] : await nginx(context, { ...same, name: 'nginx, equal bytes' })),
  ]
}

async function plan(server: ServerUnderTest, updates: number): Promise<HttpConnection[]> {
  const bots = await server.registerBots(connections)
  const random = seededRandom(2)
  const plans: HttpConnection[] = []
  for (const bot of bots) {
    let pairs = ''
    for (let index = 0; index < updates; index++) {
      pairs += `{"bot_id":${bot.botId}}\n${sampleUpdate(random, index)}\n`
    }
    const ids = updates === 0 ? [] : await server.pushPairs(pairs)
    // Far below the oldest means from the oldest, as do 0 and the oldest itself.
    const offsets = updates === 0 ? [0, 1, 2, 3] : [0, ids[0] ?? 0, 1, (ids[0] ?? 0) - 1]
    const texts = updates === 0 ? emptyBody.length : bodyBytesOf(ids)
    plans.push({
      port: server.botPort,
      requests: offsets.map((offset) => requestOf(bot, offset)),
      bodyBytesMin: texts,
      bodyBytesMax: texts,
    })
  }
  return plans
}

function bodyBytesOf(ids: readonly number[]): number {
  const listed = ids.map((id) => `{"update_id":${id},`.length + updateBytes - 1)
  return emptyBody.length + listed.reduce((sum, bytes) => sum + bytes, 0) + ids.length - 1
}

function requestOf(bot: RegisteredBot, offset: number): string {
  const query = `offset=${offset}&limit=${updatesPerAnswer}&timeout=0`
  return (
    `GET /bot${bot.token}/getUpdates?${query} HTTP/1.1\r\nHost: localhost\r\n` +
    'Accept: */*\r\nConnection: keep-alive\r\n\r\n'
  )
}
