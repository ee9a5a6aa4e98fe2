/** Dead letters of a webhook, seen from outside: listed, replayed, dropped, and complete after kill -9. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { until } from '../support/kit/until.ts'

interface Letter {
  readonly update_id: number
  readonly reason: string
  readonly attempts: number
  readonly last_error: string | null
}

async function lettersOf(server: Server, { botId }: RegisteredBot, query = ''): Promise<Letter[]> {
  const { status, text, body } = await server.admin(
    'GET',
    `/v1/bots/${botId}/dead-letters?limit=1000${query}`,
  )
  assert.equal(status, 200, text)
  assert(body.total >= body.dead_letters.length)
  return body.dead_letters
}

async function pendingOf(server: Server, { botId }: RegisteredBot): Promise<number> {
  return (await server.admin('GET', `/v1/bots/${botId}`)).body.pending
}

test('dead letters are stored, listed, replayed and dropped, and kill -9 neither loses nor doubles any', async (t) => {
  let isWell = false
  const delivered = new Map<string, Set<number>>()
  const sink = await startSink(t, ({ path: hook, update }, response) => {
    if (hook === '/test') return response.writeHead(500).end()
    if (!isWell) return response.writeHead(500, { 'Webhook-Delivery': 'abort-message' }).end()
    const name = String(update.message?.['name'])
    delivered.set(name, (delivered.get(name) ?? new Set()).add(update.update_id))
    return response.end()
  })
  let server = await startServer(t, { workers: 2, flags: ['--local'] })
  const bot = await server.register()
  const path = `/v1/bots/${bot.botId}/dead-letters`
  await server.call(bot.token, 'setWebhook', { url: sink.url('/') })
  await server.call(bot.token, 'test/setWebhook', { url: sink.url('/test') })

  await t.test('one dead letter', async () => {
    const text = '{"message":{"name" : "\\u00fc","n":12345678901234567890}}'
    const { body: pushed } = await server.admin(
      'POST',
      `/v1/bots/${bot.botId}/updates?ordering_key=7`,
      text,
    )
    await until(async () => (await lettersOf(server, bot)).length === 1)
    const shown = await server.admin('GET', `${path}/${pushed.update_id}`)
    assert.equal(shown.headers['content-type'], 'application/json')
    assert(shown.text.endsWith(`,"update":${text}}`), shown.text)
    const { update: _update, ...summary } = shown.body
    const list = await server.admin('GET', path)
    assert.deepEqual(list.body, { dead_letters: [summary], total: 1 })
    const { time, accepted, expires, ...rest } = summary
    assert.deepEqual(rest, {
      update_id: pushed.update_id,
      type: 'message',
      ordering_key: '=7',
      reason: 'refused',
      attempts: 1,
      last_error: 'Wrong response from the webhook: 500 Internal Server Error',
      bytes: text.length - 2,
    })
    assert(time >= accepted && expires - time === 7 * 86_400, JSON.stringify(summary))
    const { body: report } = await server.admin('GET', `/v1/bots/${bot.botId}`)
    assert.deepEqual([report.dead_letters, report.test.dead_letters], [1, 0])
    assert.deepEqual((await server.admin('DELETE', `${path}/${pushed.update_id}`)).body, {
      update_id: pushed.update_id,
      removed: true,
    })
    assert.deepEqual(await lettersOf(server, bot), [])
  })

  await t.test('an invalid request gets its error code', async () => {
    for (const [method, asked, status, code] of [
      ['GET', `${path}/5`, 404, 'UNKNOWN_DEAD_LETTER'],
      ['DELETE', `${path}/5`, 404, 'UNKNOWN_DEAD_LETTER'],
      ['POST', `${path}/5/replay`, 404, 'UNKNOWN_DEAD_LETTER'],
      ['GET', `${path}/abc`, 400, 'BAD_REQUEST'],
      ['DELETE', `${path}?tset=true`, 400, 'BAD_REQUEST'],
      ['GET', `${path}?limit=0`, 400, 'BAD_REQUEST'],
      ['GET', '/v1/bots/12345/dead-letters', 404, 'UNKNOWN_BOT'],
      ['POST', '/v1/bots/12345/dead-letters/replay', 404, 'UNKNOWN_BOT'],
    ] as const) {
      const answer = await server.admin(method, asked)
      assert.deepEqual([answer.status, answer.body.error.code], [status, code], asked)
    }
    assert.deepEqual((await server.admin('POST', `${path}/replay`)).body, { replayed: [] })
    assert.deepEqual((await server.admin('DELETE', path)).body, { removed: 0 })
  })

  await t.test('the /test/ queue has separate dead letters', async () => {
    await server.push(bot.botId, { message: { name: 'test' } }, 'ttl=1&test=true')
    await until(async () => (await lettersOf(server, bot, '&test=true')).length === 1)
    const [expired] = await lettersOf(server, bot, '&test=true')
    assert.deepEqual([expired?.reason, expired?.attempts], ['expired', 2])
    assert.match(expired?.last_error ?? '', /500/)
    assert.deepEqual(await lettersOf(server, bot), [])
    assert.deepEqual((await server.admin('DELETE', `${path}?test=true`)).body, { removed: 1 })
  })

  const names = Array.from({ length: 300 }, (_, n) => `n${n}`)
  await t.test(
    'after kills while updates become dead letters, each update is exactly one dead letter',
    async () => {
      const lines = names.map(
        (name) =>
          `{"bot_id":${bot.botId},"ttl":2,"ordering_key":"${name}"}\n{"message":{"name":"${name}"}}\n`,
      )
      const { text } = await server.admin('POST', '/v1/updates', lines.join(''))
      const ids = text
        .trim()
        .split('\n')
        .map((line): number => JSON.parse(line).update_id)
      await until(async () => (await lettersOf(server, bot)).length > 20)
      await server.kill()
      server = await server.restart()
      const waiting = await lettersOf(server, bot)
      assert(waiting.length > 20, 'what was a letter is one')
      await until(async () => (await pendingOf(server, bot)) === 0)
      assert.deepEqual(
        (await lettersOf(server, bot)).map((deadLetter) => deadLetter.update_id),
        ids,
      )
    },
  )

  await t.test(
    'after kills during a replay, each update is either a dead letter or a new update',
    async () => {
      isWell = true
      const oldest = (await lettersOf(server, bot))[0]?.update_id
      const one = await server.admin('POST', `${path}/${oldest}/replay`)
      assert(one.body.update_id > (oldest ?? 0), one.text)
      const replay = server.admin('POST', `${path}/replay`).catch(() => undefined)
      await sink.atLeast(sink.deliveries.length + 30)
      await server.kill()
      await replay
      server = await server.restart()
      const { body } = await server.admin('POST', `${path}/replay`)
      assert.equal(body.stopped, undefined)
      await until(async () => (await pendingOf(server, bot)) === 0)
      assert.deepEqual(await lettersOf(server, bot), [])
      for (const name of names) assert.equal(delivered.get(name)?.size, 1, name)
    },
  )

  await t.test('a polling bot gets replayed updates until its queue is full', async () => {
    isWell = false
    server = await server.restart({ flags: ['--local', '--max-pending-updates=2'] })
    for (let n = 0; n < 3; n++) {
      await server.push(bot.botId, { message: { name: 'late' } }, 'ttl=1')
      await until(async () => (await lettersOf(server, bot)).length === n + 1)
    }
    await server.call(bot.token, 'deleteWebhook')
    const last = (await lettersOf(server, bot))[2]?.update_id
    const { body } = await server.admin('POST', `${path}/replay`)
    assert.deepEqual(
      [body.replayed.length, body.stopped.update_id, body.stopped.code],
      [2, last, 'QUEUE_FULL'],
    )
    const { body: updates } = await server.call(bot.token, 'getUpdates')
    assert.deepEqual(
      updates.result.map((update: { update_id: number }) => update.update_id),
      body.replayed.map((deadLetter: { new_update_id: number }) => deadLetter.new_update_id),
    )
    const refused = await server.admin('POST', `${path}/replay`)
    assert.deepEqual([refused.status, refused.body.error.code], [507, 'QUEUE_FULL'])
  })
})
