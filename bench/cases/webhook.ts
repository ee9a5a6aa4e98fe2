/**
 * Webhook deliveries of one bot over 40 connections to a local sink, deletions recorded.
 *
 * A run begins with its updates pushed, over 1,000 ordering keys, and 40 deliveries in flight whose answers the sink
 * holds back; it ends when the bot has nothing pending. So it measures deliveries alone, and no flood gate.
 */
import type { BenchCase, CaseContext, Contestant, Sample } from '../contestant.ts'
import { HelperProcess } from '../helper-process.ts'
import { nginx } from '../http-contestants.ts'
import type { HttpSample } from '../http-sample.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { type RegisteredBot, ServerUnderTest } from '../server-under-test.ts'
import type { SinkQuestion } from '../sink-messages.ts'

const connections = 40
const orderingKeys = 1_000
/** Below the bound of a queue. */
const updatesPerRunMax = 80_000
const updatesPerRunMin = 2_000
const rateExpected = 10_000
const waitMsMax = 20_000
const secret = 'a-secret-of-the-bench'
const path = '/hook/of/the/bench'
const headers = Object.entries({
  'Content-Type': 'application/json',
  'X-Service-Bot-Api-Secret-Token': secret,
  'X-Telegram-Bot-Api-Secret-Token': secret,
}).flat()
const body = `{"update_id":100000000,${sampleUpdate(seededRandom(3), 1).slice(1)}`

export const webhookCase: BenchCase = {
  name: 'webhook',
  title: `webhook deliveries, one bot, ${connections} connections, 300 B updates`,
  operation: 'delivery',
  targets: [{ kind: 'cpuRatio', against: 'nginx return 200', max: 6 }],
  async open(context) {
    const sink = new HelperProcess('webhook-sink', context)
    const port = await sink.ask<number>(asked({ kind: 'listen' }))
    const own = await openServer(context, sink, port)
    if (context.isProfiled) return [own]
    return [own, openUndici(context, sink, port), ...(await openNginx(context))]
  },
}

async function openServer(
  context: CaseContext,
  sink: HelperProcess,
  port: number,
): Promise<Contestant> {
  const server = await ServerUnderTest.start(context)
  const [bot] = await server.registerBots(1)
  if (bot === undefined) throw new Error('expected a bot')
  await server.botMethod(bot.token, 'setWebhook', {
    url: `http://127.0.0.1:${port}${path}`,
    max_connections: connections,
    secret_token: secret,
  })
  // A first success opens the fast gate.
  await deliver({ server, bot, sink }, 1, 1)
  let rate = rateExpected
  return {
    name: 'postbote',
    async run(durationMs) {
      const wanted = Math.round((rate * durationMs) / 1_000)
      const count = Math.min(Math.max(wanted, updatesPerRunMin), updatesPerRunMax)
      const sample = await deliver({ server, bot, sink }, count, connections)
      rate = sample.operations / sample.seconds
      return sample
    },
    residentBytes: () => server.residentBytes(),
    profiles: server.profiles,
  }
}

interface Parties {
  readonly server: ServerUnderTest
  readonly bot: RegisteredBot
  readonly sink: HelperProcess
}

async function deliver(parties: Parties, count: number, inFlight: number): Promise<Sample> {
  const { server, bot, sink } = parties
  await sink.ask(asked({ kind: 'hold' }))
  await server.pushPairs(pairsOf(bot.botId, count))
  await until(async () => (await sink.ask<number>(asked({ kind: 'held' }))) === inFlight)
  return server.profiled(async () => {
    const cpuUs = server.cpuUs()
    const loadCpuUs = sink.cpuUs()
    const startMs = performance.now()
    await sink.ask(asked({ kind: 'release', count }))
    const info = (): Promise<{ pending_update_count: number }> =>
      server.botMethod(bot.token, 'getWebhookInfo', {})
    await until(async () => (await info()).pending_update_count === 0)
    return {
      operations: count,
      seconds: (performance.now() - startMs) / 1_000,
      cpuUs: server.cpuUs() - cpuUs,
      loadCpuUs: sink.cpuUs() - loadCpuUs,
    }
  })
}

function pairsOf(botId: number, count: number): string {
  const random = seededRandom(count)
  const samples = Array.from({ length: orderingKeys }, (_, key) => sampleUpdate(random, key))
  let text = ''
  for (let index = 0; index < count; index++) {
    const key = index % orderingKeys
    text += `{"bot_id":${botId},"ordering_key":"${key}"}\n${samples[key]}\n`
  }
  return text
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + waitMsMax
  while (!(await isTrue())) {
    if (performance.now() > endMs) throw new Error(`still waiting after ${waitMsMax} ms`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

function openUndici(context: CaseContext, sink: HelperProcess, port: number): Contestant {
  const sender = new HelperProcess('undici-sender', context)
  const question = { port, connections, path, headers, body }
  return {
    name: 'bare undici',
    async run(durationMs) {
      const cpuUs = sender.cpuUs()
      const loadCpuUs = sink.cpuUs()
      const sample = await sender.ask<HttpSample>({ ...question, durationMs })
      return { ...sample, cpuUs: sender.cpuUs() - cpuUs, loadCpuUs: sink.cpuUs() - loadCpuUs }
    },
  }
}

/** What nginx spends on such a request as a server, under `http-load`. */
function openNginx(context: CaseContext): Promise<Contestant[]> {
  const lines = [`POST ${path} HTTP/1.1`, 'Host: 127.0.0.1', `Content-Length: ${body.length}`]
  for (let index = 0; index < headers.length; index += 2) {
    lines.push(`${headers[index]}: ${headers[index + 1]}`)
  }
  const requests = [`${lines.join('\r\n')}\r\n\r\n${body}`]
  return nginx(context, { name: 'nginx return 200', connections, requests, bodyBytes: 2 })
}

/** Checks a question's type. */
function asked(question: SinkQuestion): SinkQuestion {
  return question
}
