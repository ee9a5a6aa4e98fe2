/**
 * Sends every kind of request that no client sends to a real server with two workers. Each complete request must get
 * one correct response and never a 5xx; each broken one a 4xx or the end of its connection. Nothing may hang, crash,
 * leak, or disturb other clients.
 *
 *     generators (a seed -> conversations) --> lanes, each with one connection at a time --> verdict on each response
 *
 *     FUZZ_CASES=1000000       the number of requests
 *     FUZZ_SEED=2              other requests; by default they are always the same, in CI, too
 *     FUZZ_SEED=random         a random seed; a failure prints it
 *     FUZZ_PATH=...            one conversation of that seed, as a failure printed it
 *     FUZZ_TLS=1               all of it through TLS
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { budgetWaitersPerDebtorMax } from '../../src/admission/budgets/budget-gate.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { drawnRuns } from '../support/kit/drawn-runs.ts'
import { startBehindTls } from '../support/network/tls-front.ts'
import { until } from '../support/kit/until.ts'
import { conversations } from './conversations.ts'
import { ControlBot, Feeder, makeWorld } from './fuzz-world.ts'
import { play } from './play.ts'
import type { Conversation } from './wire-case.ts'
import { descriptorsOf, filesOf, tellMemoryFile, type Vitals, vitalsOf } from './vitals.ts'

const casesWanted = Number(process.env['FUZZ_CASES'] ?? drawnRuns(15_000))
const seed = seedOf(process.env['FUZZ_SEED'] ?? '1')
const path = process.env['FUZZ_PATH']
const isTls = process.env['FUZZ_TLS'] !== undefined
/**
 * No more than may wait for one bot, so that none is refused with 429: all may send an expensive request to the same bot, and
 * on a busy machine requests seem to cost more.
 */
const lanes = budgetWaitersPerDebtorMax
/** Conversations of one lane with one seed. */
const conversationsPerRun = 20
const deadlineMs = 20_000
/** While a failure is reduced, the deadline is shorter. */
const shrunkDeadlineMs = 5_000
/** Number of conversations between two checks of the control bot. */
const controlEvery = 50
/**
 * Allowed growth per process since the beginning; some 300 bytes per request, and the calls that are recorded for the audit,
 * of which the first shard keeps a bounded number.
 */
const keptKibMax = 24 * 1024
const keptDescriptorsMax = 16
/** LevelDB opens and closes files. */
const keptFilesMax = 8

test('every request gets exactly one correct response, and other clients are not affected', async (t) => {
  const server = await (isTls ? startBehindTls : startServer)(t, {
    workers: 2,
    // No request may cause a connection to another machine.
    flags: ['--block-cidr=0.0.0.0/0', '--block-cidr=::/0'],
    env: { NODE_OPTIONS: `--import=${tellMemoryFile}` },
  })
  // The warnings are half of what a failure can be explained with.
  t.after(() => t.diagnostic(`warnings: ${warningsOf(server.output())}`))
  const pids = server.pids()
  const world = await makeWorld(server)
  const feeder = new Feeder(server, world)
  const control = new ControlBot(server, await server.register(300_000_000))
  const lookAround = async (): Promise<void> => {
    await Promise.all([feeder.feed(), control.check()])
  }
  await lookAround()
  const run = new FuzzRun({
    ports: {
      bot: Number(new URL(server.botUrl).port),
      private: Number(new URL(server.privateUrl).port),
    },
    conversations: conversations(world),
    lookAround,
  })
  if (path !== undefined) {
    await run.replay(path)
    return
  }
  await run.until(casesWanted / 10)
  const before = await vitalsOf(server)
  const casesBefore = run.cases
  const startMs = performance.now()
  await run.until(casesWanted)
  const after = await vitalsOf(server)
  const perSecond = Math.round((run.cases - casesBefore) / ((performance.now() - startMs) / 1000))
  t.diagnostic(`seed ${seed}, ${run.cases} cases, ${perSecond} a second`)
  report(t, before, after)
  await control.check()
  await feeder.end()

  assert.deepEqual(server.pids(), pids, 'a process was lost')
  assert.doesNotMatch(server.output(), /"level":(?:50|60)|Warning/)
  await assertGivenBack(server, before, after)
  for (const { token, updates } of world.steady) {
    const { text } = await server.call(token, 'getUpdates', { offset: 1 })
    assert.equal(text, `{"ok":true,"result":[${updates.slice(0, 100).join(',')}]}`)
    const last = updates.slice(100)
    const offset = Number(/\d+/.exec(last[0] ?? '')?.[0])
    const rest = await server.call(token, 'getUpdates', { offset })
    assert.equal(rest.text, `{"ok":true,"result":[${last.join(',')}]}`)
  }
})

function seedOf(text: string): number {
  return text === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(text)
}

function warningsOf(output: string): string {
  const lines = output.split('\n').filter((line) => !/"level":30|^holds /.test(line))
  return lines.slice(0, 20).join('\n').slice(0, 4_000)
}

interface FuzzRunOptions {
  readonly ports: Readonly<Record<Conversation['listener'], number>>
  readonly conversations: fc.Arbitrary<Conversation>
  /** Called now and then, never concurrently. */
  lookAround(): Promise<void>
}

class FuzzRun {
  readonly #options: FuzzRunOptions
  #cases = 0
  #conversationCount = 0
  #rounds = 0
  #looking = Promise.resolve()
  #failure: Error | undefined

  constructor(options: FuzzRunOptions) {
    this.#options = options
  }

  get cases(): number {
    return this.#cases
  }

  async until(cases: number): Promise<void> {
    const lane = async (): Promise<void> => {
      while (this.#cases < cases && this.#failure === undefined) {
        await this.#check({ seed: seed + this.#rounds++, numRuns: conversationsPerRun })
      }
    }
    await Promise.all(Array.from({ length: lanes }, lane))
    await this.#looking
    if (this.#failure !== undefined) throw this.#failure
  }

  async replay(counterexample: string): Promise<void> {
    await this.#check({ seed, path: counterexample, numRuns: 1 })
    if (this.#failure !== undefined) throw this.#failure
  }

  async #check(parameters: { seed: number; path?: string; numRuns: number }): Promise<void> {
    let first: string | undefined
    const property = fc.asyncProperty(this.#options.conversations, async (conversation) => {
      if (this.#failure !== undefined) return
      this.#cases += conversation.cases.length
      const complaint = await play(conversation, {
        ports: this.#options.ports,
        deadlineMs: first === undefined ? deadlineMs : shrunkDeadlineMs,
        isRepeated: first !== undefined || path !== undefined,
      })
      first ??= complaint
      if (complaint !== undefined) throw new Error(complaint)
      if (++this.#conversationCount % controlEvery === 0)
        this.#looking = this.#lookAround(this.#looking)
    })
    const details = await fc.check(property, {
      ...parameters,
      interruptAfterTimeLimit: 60_000,
      markInterruptAsFailure: false,
    })
    if (details.failed) this.#failure ??= failureOf(details, first ?? '')
  }

  async #lookAround(before: Promise<void>): Promise<void> {
    await before
    try {
      await this.#options.lookAround()
    } catch (error) {
      this.#failure ??= new Error(`others were disturbed under seed ${seed}: ${String(error)}`, {
        cause: error,
      })
    }
  }
}

function failureOf(details: fc.RunDetails<[Conversation]>, first: string): Error {
  const { seed: usedSeed, counterexamplePath, counterexample, errorInstance } = details
  const [conversation] = counterexample ?? []
  const cases = conversation?.cases.map(
    ({ name, bytes }) =>
      `  ${name}\n    ${JSON.stringify(bytes.toString('latin1').slice(0, 1_000))}`,
  )
  return new Error(
    [
      `${first}\nmade smaller: ${String(errorInstance)}`,
      `${conversation?.listener} listener, ${JSON.stringify(conversation?.delivery)}, ${conversation?.finish}`,
      ...(cases ?? []),
      `again: ${isTls ? 'FUZZ_TLS=1 ' : ''}FUZZ_SEED=${usedSeed} FUZZ_PATH=${counterexamplePath} node dist/scripts/test-runner.js fuzz`,
    ].join('\n'),
  )
}

function report(t: TestContext, before: Vitals, after: Vitals): void {
  const { user, system } = process.cpuUsage()
  t.diagnostic(`the server took ${(after.cpuS - before.cpuS).toFixed(1)} s of CPU,`)
  t.diagnostic(`its clients ${((user + system) / 1e6).toFixed(1)} s`)
  t.diagnostic(`descriptors ${before.descriptors.join()} -> ${after.descriptors.join()}`)
  t.diagnostic(`of which files ${before.files.join()} -> ${after.files.join()}`)
  t.diagnostic(`MiB ${before.residentMib.join()} -> ${after.residentMib.join()}`)
  t.diagnostic(`of which KiB of the program ${before.heldKib.join()} -> ${after.heldKib.join()}`)
}

/** The lanes were idle at both moments. Workers close their connections to each other 20 s after the last use. */
async function assertGivenBack(server: Server, before: Vitals, after: Vitals): Promise<void> {
  assert.equal(after.waitingPolls, 0)
  for (const [nth, kib] of after.heldKib.entries()) {
    const keptKib = kib - (before.heldKib[nth] ?? 0)
    assert.ok(keptKib <= keptKibMax, `process ${nth} keeps ${keptKib} KiB more`)
  }
  for (const [nth, mib] of after.residentMib.entries()) {
    assert.ok(mib <= (before.residentMib[nth] ?? 0) + 150, `process ${nth} takes ${mib} MiB`)
  }
  for (const [nth, pid] of server.pids().entries()) {
    const files = filesOf(pid) - (before.files[nth] ?? 0)
    assert.ok(files <= keptFilesMax, `process ${nth} keeps ${files} files more`)
    const countMax = (before.descriptors[nth] ?? 0) + keptDescriptorsMax
    await until(() => descriptorsOf(pid) <= countMax, 30_000).catch(() =>
      assert.fail(`process ${nth} keeps ${descriptorsOf(pid)} descriptors, ${countMax} are fine`),
    )
  }
}
