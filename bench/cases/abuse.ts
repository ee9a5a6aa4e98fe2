/**
 * How much a hostile client slows down others: the delay of another bot's getMe and of a push, without an attack and
 * beside each one. All contestants share one server and run one at a time; the attacker has a separate address.
 */
import type { BenchCase, CaseContext, Contestant } from '../contestant.ts'
import { type Attack, attacks } from '../attacks.ts'
import type { AttackCounts, AttackQuestion } from '../attack-messages.ts'
import { meterCpu } from '../cpu-meter.ts'
import { HelperProcess } from '../helper-process.ts'
import type { HttpConnection, HttpQuestion, HttpSample } from '../http-sample.ts'
import { startHostileTls } from '../../test/support/network/hostile-tls.ts'
import { botsByWorker } from '../poll-plan.ts'
import { firstBotId, type RegisteredBot, ServerUnderTest } from '../server-under-test.ts'

const delayMsMax = 50
const getMeFigure = 'getMe p99 ms'
const pushFigure = 'push p99 ms'
const probeEveryMs = 5
/** Of each worker's bots, the first is the victim, and the others belong to the attacker. */
const bots = 32
/** Rounds last longer than usual, so that 1 % of the delays is more than one delay. */
const roundLengthFactor = 3
/** After this time, the effects of an attack are over. */
const settleMs = 500

export const abuseCase: BenchCase = {
  name: 'abuse',
  title: 'A bot and a producer beside a hostile client',
  operation: 'getMe or push',
  targets: attacks.flatMap(({ name }) =>
    [getMeFigure, pushFigure].map((figure) => ({
      kind: 'figure' as const,
      figure,
      max: delayMsMax,
      of: name,
    })),
  ),
  isExtra: true,
  async open(context) {
    const server = await ServerUnderTest.start(context)
    const byWorker = botsByWorker(await server.registerBots(bots, firstBotId), context.workers)
    const victims = byWorker.flatMap(([victim]) => victim ?? [])
    const hostile = byWorker.flatMap(([, ...others]) => others)
    const tlsPorts = await startHostileTls((end) => context.atEnd(end))
    const parts = {
      server,
      hostile,
      tlsPorts: [...tlsPorts.values()],
      getMe: probeOf(
        context,
        victims.map((bot) => getMeOf(server, bot)),
      ),
      push: probeOf(
        context,
        victims.map((bot) => pushOf(server, bot)),
      ),
      attacker: new HelperProcess('attacker', context),
    }
    const all = [undefined, ...attacks].map((attack, nth) => contestantOf(parts, attack, nth))
    return context.isAlone ? all.slice(0, 1) : all
  },
}

interface Parts {
  readonly server: ServerUnderTest
  readonly hostile: readonly RegisteredBot[]
  readonly tlsPorts: readonly number[]
  readonly getMe: Probe
  readonly push: Probe
  readonly attacker: HelperProcess
}

interface Probe {
  readonly process: HelperProcess
  readonly connections: readonly HttpConnection[]
}

function probeOf(context: CaseContext, connections: readonly HttpConnection[]): Probe {
  return { process: new HelperProcess('http-load', context), connections }
}

function contestantOf(parts: Parts, attack: Attack | undefined, nth: number): Contestant {
  const { server, hostile, tlsPorts, getMe, push, attacker } = parts
  return {
    name: attack?.name ?? 'no attack',
    profiles: server.profiles,
    async run(roundMs) {
      const durationMs = roundMs * roundLengthFactor
      const costs = meterCpu([server], [getMe.process, push.process, attacker])
      const plan = attack?.plan({
        port: server.botPort,
        fromAddress: `127.0.0.${nth + 1}`,
        bots: hostile,
        tlsPorts,
      })
      const question: AttackQuestion | undefined =
        plan === undefined ? undefined : { attack: plan, durationMs }
      const startMs = performance.now()
      const [calls, pushes, counts] = await Promise.all([
        ask(getMe, durationMs),
        ask(push, durationMs),
        question === undefined ? undefined : attacker.ask<AttackCounts>(question),
      ])
      const seconds = (performance.now() - startMs) / 1_000
      const spent = costs()
      await new Promise((resolve) => setTimeout(resolve, settleMs))
      return {
        operations: calls.delaysMs.length + pushes.delaysMs.length,
        seconds,
        ...spent,
        figures: {
          [getMeFigure]: p99Of(calls),
          [pushFigure]: p99Of(pushes),
          'getMe max ms': calls.delaysMs.at(-1) ?? Number.NaN,
          'push max ms': pushes.delaysMs.at(-1) ?? Number.NaN,
          'attack MB': (counts?.bytesSent ?? 0) / 1e6,
          'attack answers': counts?.answers ?? 0,
          'attack connections': counts?.connections ?? 0,
        },
      }
    },
  }
}

function ask({ process: helper, connections }: Probe, durationMs: number): Promise<HttpSample> {
  const question: HttpQuestion = { connections, durationMs }
  return helper.ask(question)
}

function p99Of({ delaysMs }: HttpSample): number {
  return delaysMs[Math.ceil(delaysMs.length * 0.99) - 1] ?? Number.NaN
}

function getMeOf({ botPort: port }: ServerUnderTest, { token }: RegisteredBot): HttpConnection {
  const request = `GET /bot${token}/getMe HTTP/1.1\r\nHost: localhost\r\n\r\n`
  return { port, requests: [request], bodyBytesMin: 1, bodyBytesMax: 1_000, probeEveryMs }
}

function pushOf(server: ServerUnderTest, { botId }: RegisteredBot): HttpConnection {
  const body = '{"message":{"text":"hello"}}'
  const head = [
    `POST /v1/bots/${botId}/updates HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${server.adminKey}`,
    `Content-Length: ${body.length}`,
  ]
  const request = `${head.join('\r\n')}\r\n\r\n${body}`
  const { privatePort: port } = server
  return { port, requests: [request], bodyBytesMin: 1, bodyBytesMax: 1_000, probeEveryMs }
}
