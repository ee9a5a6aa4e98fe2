/**
 * Every client for producers, in its language, at the real server: everything is stored once and in order while workers
 * are killed.
 *
 * CONFORMANCE_PAIRS=100000 pushes more, and also measures how fast each client is without faults (`npm run conformance`).
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { conformanceClients } from '../../clients/conformance/conformance-clients.ts'
import { Driver } from '../../clients/conformance/driver.ts'
import type { Job, Mode } from '../../clients/conformance/job.ts'
import { writeResults } from '../../clients/conformance/results.ts'
import { assertStored } from '../support/producers/assert-stored.ts'
import { botOf } from '../support/server/bot-of.ts'
import {
  type RegisteredBot,
  type Server,
  startServer,
  type TestEnd,
} from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'

const isLong = process.env['CONFORMANCE_PAIRS'] !== undefined
const count = Number(process.env['CONFORMANCE_PAIRS'] ?? 4_000)
const ends: TestEnd[] = []
let server: Server
/** Each run has bots of its own. */
let runs = 0

before(async () => {
  server = await startServer({ after: (end) => void ends.push(end) }, { workers: 2 })
})
after(async () => {
  for (const end of ends.toReversed()) await end()
})

for (const client of conformanceClients) {
  const skip = client.prepare() ?? false
  test(`${client.name}: each update is stored once and in order while workers are killed`, {
    skip,
  }, async (t) => {
    const bots = await registerFour()
    const driver = new Driver(client)
    let seen = 0
    let kill: Promise<void> = Promise.resolve()
    const report = await driver.run(killedJob(bots), () => {
      seen += 1
      if (seen === count * 0.25 || seen === count * 0.6) kill = kill.then(killWorkers)
    })
    await kill
    assert.equal(await driver.close(), 0)
    await assertStored(server, bots, report, count)
    assert(report.retries.length > 0)
    t.diagnostic(`${report.retries.length} repetitions`)
    writeResults({
      client: client.name,
      name: 'real server, killed workers (stream)',
      count,
      report,
    })
  })

  for (const mode of ['stream', 'pushAll'] as const) {
    const reason = skip === false && !isLong ? 'only in npm run conformance' : skip
    test(`${client.name}: its speed without faults (${mode})`, { skip: reason }, async (t) => {
      const bots = await registerFour()
      const driver = new Driver(client)
      // The first pairs find code that is not compiled yet.
      await driver.run({ ...jobOf(bots, mode), count: 4, bots: (await registerFour()).map(idOf) })
      const report = await driver.run(jobOf(bots, mode))
      assert.equal(await driver.close(), 0)
      await assertStored(server, bots, report, count)
      t.diagnostic(`${Math.round(count / ((report.done?.pushMs ?? 0) / 1_000))} pairs/s`)
      writeResults({ client: client.name, name: `real server (${mode})`, count, report })
    })
  }
}

/** Registers two bots of each worker. */
function registerFour(): Promise<RegisteredBot[]> {
  const nth = runs++
  const ids = [0, 1].flatMap((worker) => [botOf(worker, 2 * nth), botOf(worker, 2 * nth + 1)])
  return Promise.all(ids.map((botId) => server.register(botId)))
}

function idOf({ botId }: RegisteredBot): number {
  return botId
}

function jobOf(bots: readonly RegisteredBot[], mode: Mode): Job {
  // Far more failures in a row than occur here: this test is about what is stored.
  const client = { url: server.privateUrl, key: server.key, retries: 30, retryDelayMsMax: 1_000 }
  return { client, stream: {}, mode, count, bots: bots.map(idOf), text: 'hello', concurrency: 1 }
}

/** The window is so small that the job is under way when workers are killed, though results are seen later than they come. */
function killedJob(bots: readonly RegisteredBot[]): Job {
  return { ...jobOf(bots, 'stream'), stream: { pairsMax: 256 } }
}

/** Kills all of them, so that the one of the stream is among them. */
async function killWorkers(): Promise<void> {
  const pids = server.workerPids()
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  const isReplaced = (): boolean => !server.workerPids().some((pid) => pids.includes(pid))
  await until(async () => (await isReady()) && isReplaced(), 30_000)
}

function isReady(): Promise<boolean> {
  return server.admin('GET', '/readyz').then(
    ({ status }) => status === 200,
    () => false,
  )
}
