/**
 * Two workers beside one. The load shares their CPUs, so on a machine with two CPUs the rate cannot double: the CPU time
 * of an operation shows what the rate would be with more CPUs.
 */
import {
  type BenchCase,
  type CaseContext,
  type Contestant,
  type Target,
  warmPace,
} from '../contestant.ts'
import { commonNginx, ownContestant } from '../http-contestants.ts'
import { directPlan, polledBots } from '../poll-plan.ts'
import { ServerUnderTest } from '../server-under-test.ts'
import { openSink } from '../webhook-fleet.ts'
import { ingestContestant } from './ingest.ts'
import { webhookContestant } from './webhook.ts'

const oneName = 'one worker'
const twoName = 'two workers'
const target: Target = { kind: 'scaling', against: oneName, times: 2, min: 1.6 }
const ingestShape = { name: 'ingest', bots: 1_000 }
const pollShape = { updates: 100 }
const pollConnections = 32
const webhookShape = { bots: 20, connections: 10, keys: 50 }

const eightName = 'eight workers'

type Open = (context: CaseContext, name: string) => Promise<Contestant>

export const scalingCases: readonly BenchCase[] = [
  growthCase('growth', 1.15),
  growthCase('growth-hints', 1.1),
  scalingCase('scaling-poll', 'getUpdates with 100 x 300 B', openPoll),
  scalingCase('scaling-webhook', 'webhooks of 20 bots, 10 connections each', openWebhook),
]

function scalingCase(name: string, what: string, open: Open): BenchCase {
  return {
    name,
    title: `two workers and one: ${what}`,
    operation: 'operation',
    targets: [target],
    charted: { kind: 'rateRatio', against: oneName },
    async open(context) {
      const two = await open({ ...context, workers: 2 }, twoName)
      if (context.isAlone) return [two]
      const one = await open({ ...context, workers: 1 }, oneName)
      return [two, one, ...(await commonNginx(context))]
    },
  }
}

/** Ingest, also with more workers than a machine of two cores can run at a time, which share its CPUs. */
function growthCase(name: 'growth' | 'growth-hints', cpuGrowthMax: number): BenchCase {
  const isHinted = name === 'growth-hints'
  const openIngest: Open = (context, contestant) =>
    ingestContestant(context, { name: contestant, shape: ingestShape, isHinted })
  const what = `NDJSON ingest, 1,000 bots${isHinted ? ', each stream with those of one worker' : ''}`
  const scaling = scalingCase(name, what, openIngest)
  return {
    ...scaling,
    pace: warmPace,
    title: `two workers, one and eight: ${what}`,
    targets: [
      { kind: 'scaling', against: oneName, times: 2, min: 1.85, isByCpu: true },
      { kind: 'cpuGrowth', of: eightName, max: cpuGrowthMax },
    ],
    async open(context) {
      const contestants = await scaling.open(context)
      if (context.isAlone) return contestants
      return [...contestants, await openIngest({ ...context, workers: 8 }, eightName)]
    },
  }
}

async function openPoll(context: CaseContext, name: string): Promise<Contestant> {
  const server = await ServerUnderTest.start(context)
  const polled = await polledBots(server, await server.registerBots(pollConnections), pollShape)
  return ownContestant(context, {
    name,
    server,
    connections: directPlan(server, polled, pollShape),
  })
}

async function openWebhook(context: CaseContext, name: string): Promise<Contestant> {
  const sink = await openSink(context)
  const server = await ServerUnderTest.start(context)
  return webhookContestant(context, { name, shape: webhookShape, sink, server })
}
