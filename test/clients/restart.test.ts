/**
 * Restarts, kills and reloads the server under each framework, and kills a worker.
 *
 * One bot of each framework polls. At that moment its poll is waiting, or an update is on its way to it. Whatever the
 * poll gets as a response, if anything, no framework may give up, and each must receive everything once and in order:
 * it keeps its offset, so nothing comes again.
 *
 * Another bot of each framework receives by webhook while updates are pushed all the time. Each update must arrive, in
 * order: once if the server ends normally. Otherwise updates may come again whose response was not yet written to disk.
 *
 * A third bot has a webhook that does not respond during the disturbance. The update in flight must come again.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { botOf } from '../support/server/bot-of.ts'
import { startBot } from '../support/bots/framework-bot.ts'
import { isRunning } from '../support/kit/is-running.ts'
import { startBusyReceiver } from '../support/producers/busy-receiver.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { startSilentReceiver } from '../support/producers/silent-receiver.ts'
import { takingPart, testEachFramework } from '../support/bots/test-each-framework.ts'
import { pushTexts } from '../support/bots/text-messages.ts'
import { Together } from '../support/kit/together.ts'
import { until } from '../support/kit/until.ts'
import { outputOf } from '../support/programs/postbote.ts'

const firstWorker = 0

interface Disturbance {
  readonly what: string
  /** Whether an update is pushed immediately before. */
  readonly isBusy?: true
  /** Whether a server process is killed, so that responses of a webhook may be forgotten. */
  readonly isSudden?: true
  /** Whether a webhook leaves an update without a response during the disturbance. */
  readonly isUnanswered?: true
  /** Disturbs the server. The test continues with the returned server. */
  readonly happen: (server: Server) => Promise<Server>
}

const disturbances: readonly Disturbance[] = [
  // test/cluster/shutdown.test.ts tests that a restart waits for responses, and how long.
  { what: 'a restart', happen: (server) => server.restart() },
  { what: 'a kill', isSudden: true, isUnanswered: true, happen: killAndStart },
  { what: 'a kill just after a push', isBusy: true, isSudden: true, happen: killAndStart },
  { what: 'the end of a worker', isSudden: true, isUnanswered: true, happen: killFirstWorker },
  { what: 'a reload', isUnanswered: true, happen: reload },
]

test('frameworks survive restarts of the server', { concurrency: true }, async (t) => {
  let server = await startServer(t, {
    workers: 2,
    flags: ['--local', '--webhook-verify-timeout=60'],
  })
  let polls = takingPart({}).length
  const together = new Together(polls + 1)
  const meet = (): Promise<void> => together.meet(() => until(() => doPollsWait(server, polls)))
  const meetFor = ({ happen }: Disturbance): Promise<void> =>
    together.meet(async () => {
      server = await happen(server)
    })
  const frameworksGoOn = testEachFramework(t, {
    column: 'restart',
    title:
      'continues when the server is restarted, killed, loses a worker and is reloaded during its poll and webhook',
    run: async (each, framework) => {
      try {
        const registered = await server.register()
        const task = { apiRoot: server.botUrl, token: registered.token, mode: 'polling' } as const
        const [bot, receiver] = await Promise.all([
          startBot(each, framework, task),
          framework.withoutWebhook === undefined
            ? startBusyReceiver(each, framework, server)
            : undefined,
        ])
        for (const disturbance of disturbances) {
          const { what, isBusy, isSudden = false } = disturbance
          await meet()
          if (isBusy) await pushTexts(server, registered, [`before ${what}`])
          const stopPushing = receiver?.pushAllTheTime(what)
          await meetFor(disturbance)
          await stopPushing?.({ isSudden })
          await pushTexts(server, registered, [`after ${what}`])
          await bot.hear(`after ${what}`)
        }
        const expected = disturbances.flatMap(({ what, isBusy }) =>
          isBusy ? [`before ${what}`, `after ${what}`] : [`after ${what}`],
        )
        assert.deepEqual(bot.texts, expected)
        if (receiver === undefined) return 'polls on'
        await receiver.stop()
        return 'polls on, goes on receiving'
      } finally {
        polls--
        together.leave()
      }
    },
  })
  const unanswered = t.test(
    'an update to which a webhook did not respond is delivered again',
    async (each) => {
      try {
        const receiver = await startSilentReceiver(each, server, botOf(firstWorker))
        for (const disturbance of disturbances) {
          const { what, isUnanswered } = disturbance
          await meet()
          if (isUnanswered) await receiver.withhold(server, what)
          await meetFor(disturbance)
          if (isUnanswered) await receiver.answer(server, what)
        }
      } finally {
        together.leave()
      }
    },
  )
  await Promise.all([frameworksGoOn, unanswered])
})

async function doPollsWait(server: Server, polls: number): Promise<boolean> {
  const { text } = await server.admin('GET', '/metrics')
  const waiting = [...text.matchAll(/^postbote_polls_waiting(?:\{.*\})? (\d+)$/gm)]
  return waiting.reduce((sum, [, count]) => sum + Number(count), 0) === polls
}

async function killAndStart(server: Server): Promise<Server> {
  await server.kill()
  return server.restart()
}

/** The server has just started, so the first of its child processes is its first worker. */
async function killFirstWorker(server: Server): Promise<Server> {
  const worker = server.workerPids()[firstWorker]
  assert(worker !== undefined)
  process.kill(worker, 'SIGKILL')
  await until(() => !isRunning(worker) && server.workerPids().length === 2)
  await until(async () => (await server.admin('GET', '/readyz')).status === 200)
  return server
}

async function reload(server: Server): Promise<Server> {
  await outputOf(['reload', '--dir', server.dir])
  return server
}
