/** Every framework polls, unmodified except for the server's address; all at the same time, each with separate bots. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { documentedUpdates } from '../support/server/documented-updates.ts'
import { startBot } from '../support/bots/framework-bot.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { updateTypes } from '../../src/kit/update-types.ts'
import { testEachFramework } from '../support/bots/test-each-framework.ts'
import { messageOf, pendingOf, pushTexts } from '../support/bots/text-messages.ts'
import type { Framework } from './frameworks.ts'

const names = ['one', 'two', 'three', 'four', 'five', 'six']

test('frameworks poll', { concurrency: true }, async (t) => {
  const server = await startServer(t, { workers: 2 })
  // Some frameworks take ten seconds to stop, so all scenarios run at the same time.
  await Promise.all(
    [stopAndStart, stopInTheMiddle, endInTheMiddle, askForTypes, takeExamples].map((each) =>
      each(t, server),
    ),
  )
})

function stopAndStart(t: TestContext, server: Server): Promise<void> {
  return testEachFramework(t, {
    column: 'polling',
    title: 'receives in order, and after a stop and a start gets what it did not confirm',
    run: async (each, framework) => {
      const registered = await server.register()
      const task = { apiRoot: server.botUrl, token: registered.token, mode: 'polling' } as const
      const first = await startBot(each, framework, task)
      await pushTexts(server, registered, names.slice(0, 3))
      await first.receive(3)
      await first.stop()
      assert.deepEqual(first.texts, names.slice(0, 3))
      const pending = await pendingOf(server, registered)
      if (framework.confirmsAtStop) assert.equal(pending, 0)

      await pushTexts(server, registered, names.slice(3))
      const second = await startBot(each, framework, task)
      await second.hear('six')
      assertOnlyRepeats(second.texts, { from: 3, atMost: pending })
      return framework.confirmsAtStop ? 'in order, confirms at a stop' : 'in order'
    },
  })
}

function stopInTheMiddle(t: TestContext, server: Server): Promise<void> {
  return testEachFramework(t, {
    title: 'stops in the middle of a batch and loses none of it',
    run: async (each, framework) => {
      const { registered, task, first } = await holdInTheMiddle(each, framework, server)
      await first.stop()
      const seen = first.texts.length
      assert.deepEqual(first.texts, names.slice(0, seen))
      const pending = await pendingOf(server, registered)

      await pushTexts(server, registered, ['seven'])
      const second = await startBot(each, framework, task)
      await second.hear('seven')
      assertOnlyRepeats(second.texts.slice(0, -1), { from: seen, atMost: pending - (6 - seen) })
    },
  })
}

function endInTheMiddle(t: TestContext, server: Server): Promise<void> {
  return testEachFramework(t, {
    title: 'is killed in the middle of a batch and gets all of it again',
    without: ({ waitsForHandlers }) =>
      waitsForHandlers ? undefined : 'it polls on, and so confirms, while its handlers run',
    run: async (each, framework) => {
      const { registered, task, first } = await holdInTheMiddle(each, framework, server)
      await first.kill()
      assert.equal(await pendingOf(server, registered), 6)

      const second = await startBot(each, framework, task)
      await second.hear('six')
      assert.deepEqual(second.texts, names)
    },
  })
}

/** Starts a bot that receives six messages in one response and is handling the third. */
async function holdInTheMiddle(t: TestContext, framework: Framework, server: Server) {
  const registered = await server.register()
  await pushTexts(server, registered, names)
  const task = { apiRoot: server.botUrl, token: registered.token, mode: 'polling' } as const
  const first = await startBot(t, framework, { ...task, holdsAt: 'three' })
  await first.hear('three')
  return { registered, task, first }
}

function askForTypes(t: TestContext, server: Server): Promise<void> {
  return testEachFramework(t, {
    title: 'gets only the types that it requests, in the test environment if it can',
    run: async (each, framework) => {
      const registered = await server.register()
      const isTest = framework.hasTestSwitch
      const bot = await startBot(each, framework, {
        apiRoot: server.botUrl,
        token: registered.token,
        mode: 'polling',
        isTest,
        allowedUpdates: ['message', 'message_reaction'],
      })
      const query = isTest ? 'test=true' : ''
      await pushTexts(server, registered, ['one'], query)
      await bot.receive(1)
      const method = isTest ? 'test/getWebhookInfo' : 'getWebhookInfo'
      const { body } = await server.call(registered.token, method)
      assert.deepEqual(body.result.allowed_updates, ['message', 'message_reaction'])
      const edited = { edited_message: { ...messageOf('not asked for'), edit_date: 1_700_000_001 } }
      assert.equal(await server.push(registered.botId, edited, query), undefined)

      if (isTest) await pushTexts(server, registered, ['of the other environment'])
      await pushTexts(server, registered, ['two'], query)
      await bot.hear('two')
      assert.deepEqual(bot.texts, ['one', 'two'])
    },
  })
}

function takeExamples(t: TestContext, server: Server): Promise<void> {
  const examples = new Map(
    documentedUpdates().map(({ update }) => [JSON.stringify(update), update]),
  )
  return testEachFramework(t, {
    title: 'decodes every update that the documentation shows',
    run: async (each, framework) => {
      const registered = await server.register()
      const types = encodeURIComponent(JSON.stringify(updateTypes))
      await server.call(registered.token, `getUpdates?allowed_updates=${types}`)
      for (const update of examples.values()) {
        const id = await server.push(registered.botId, update, 'validate=telegram')
        assert.notEqual(id, undefined)
      }
      await pushTexts(server, registered, ['last'])
      const task = { apiRoot: server.botUrl, token: registered.token, mode: 'polling' } as const
      await (await startBot(each, framework, task)).hear('last')
    },
  })
}

/** Checks that the texts are all names from number `from` on, in order, preceded only by repetitions of the last ones. */
function assertOnlyRepeats(
  texts: readonly string[],
  { from, atMost }: { readonly from: number; readonly atMost: number },
): void {
  const repeated = texts.length - (names.length - from)
  assert(repeated >= 0 && repeated <= atMost, `${texts.join(' ')}: repeats at most ${atMost}`)
  assert.deepEqual(texts, names.slice(from - repeated))
}
