/**
 * The server under each framework is restarted, killed, loses a worker and is reloaded.
 *
 * One bot of each polls, with its poll waiting then, or just as an update is on its way to it. Whatever a poll is
 * answered then, or that it is not, no framework may give up, and each must get everything once and in order: it keeps
 * its offset, so nothing comes again.
 *
 * Another bot of each receives by webhook, while updates are pushed all the time. Each must come, in order; once where
 * the server ends in order, and where it does not, some may come again whose answer it had not yet written down.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { run } from '../support/child-process.ts'
import { startBot } from '../support/framework-bot.ts'
import { isRunning } from '../support/is-running.ts'
import { startBusyReceiver } from '../support/busy-receiver.ts'
import { type Server, startServer } from '../support/server.ts'
import { takingPart, testEachFramework } from '../support/test-each-framework.ts'
import { pushTexts } from '../support/text-messages.ts'
import { Together } from '../support/together.ts'
import { untilInTheCrowd as until } from '../support/until.ts'

const mainFile = fileURLToPath(new URL('../../src/main.js', import.meta.url))

interface Disturbance {
  readonly what: string
  /** Whether an update is pushed just before. */
  readonly isBusy?: true
  /** Whether a process of the server ends without an end: what a webhook has answered may be forgotten. */
  readonly isSudden?: true
  /** The server goes on as the one returned. */
  readonly happen: (server: Server) => Promise<Server>
}

const disturbances: readonly Disturbance[] = [
  { what: 'a restart', happen: (server) => server.restart() },
  { what: 'a kill', isSudden: true, happen: killAndStart },
  { what: 'a kill just after a push', isBusy: true, isSudden: true, happen: killAndStart },
  { what: 'the end of a worker', isSudden: true, happen: killWorker },
  { what: 'a reload', happen: reload },
]

test('frameworks outlive the server', { concurrency: true }, async (t) => {
  let server = await startServer(t, { flags: ['--local', '--webhook-verify-timeout=60'] })
  const together = new Together(takingPart({}).length)
  await testEachFramework(t, {
    column: 'restart',
    title:
      'goes on when the server is restarted, killed, loses a worker and is reloaded under its poll and webhook',
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
        for (const { what, isBusy, isSudden = false, happen } of disturbances) {
          await together.meet(() => until(() => doPollsWait(server, together.members)))
          if (isBusy) await pushTexts(server, registered, [`before ${what}`])
          const stopPushing = receiver?.pushAllTheTime(what)
          await together.meet(async () => {
            server = await happen(server)
          })
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
        together.leave()
      }
    },
  })
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

async function killWorker(server: Server): Promise<Server> {
  const [worker = 0] = server.workerPids()
  process.kill(worker, 'SIGKILL')
  await until(() => !isRunning(worker) && server.workerPids().length === 2)
  await until(async () => (await server.admin('GET', '/readyz')).status === 200)
  return server
}

async function reload(server: Server): Promise<Server> {
  await run(process.execPath, [mainFile, 'reload', '--dir', server.dir])
  return server
}
