/** Keys of the private API (docs/use/api.md) at real servers: every worker knows them, and a revoked one is refused at once. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { keyPlacesShare } from '../../src/access/key-shares.ts'
import { PostboteClient } from '../../clients/typescript/postbote-client.ts'
import { tailsMax } from '../../src/features/tail/tail-routes.ts'
import { eventStreamsMax } from '../../src/features/events/event-routes.ts'
import { registerBots } from '../support/server/bot-of.ts'
import { KeyUser } from '../support/server/key-user.ts'
import { RawPushStream } from '../support/producers/raw-push-stream.ts'
import { type Server, send } from '../support/server/server.ts'
import { sharedServer } from '../support/server/shared-server.ts'
import { TailReader } from '../support/producers/tail-reader.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { outputOf } from '../support/programs/postbote.ts'

const shared = sharedServer()
const message = { message: { text: 'hello' } }
let made = 0

function newName(): string {
  made += 1
  return `key ${made}`
}

test('a key may do what its scopes say at any worker, and gets 403 with the scope that it lacks', async () => {
  const server = await shared()
  const bots = await registerBots(server)
  const [pusher, reader, manager, all] = await Promise.all(
    ['push', 'read', 'manage', 'all'].map((scope) =>
      KeyUser.make(server, { name: newName(), scopes: [scope] }),
    ),
  )
  for (const botId of bots) {
    const bot = `/v1/bots/${botId}`
    for (const [method, path, body, allowed] of [
      ['POST', `${bot}/updates`, message, [pusher]],
      ['GET', bot, undefined, [reader]],
      ['GET', `${bot}/dead-letters`, undefined, [reader]],
      ['GET', '/v1/bots', undefined, [reader]],
      ['GET', '/v1/summary', undefined, [reader]],
      ['GET', '/metrics', undefined, [reader]],
      ['POST', `${bot}/pause`, undefined, [manager]],
      ['POST', `${bot}/resume`, undefined, [manager]],
      ['PUT', `${bot}/limits`, { deliveries_per_second: null }, [manager]],
      ['GET', '/v1/shards', undefined, [pusher]],
      ['GET', '/v1/keys', undefined, []],
      ['POST', '/v1/shards/0/check', undefined, []],
      ['GET', '/v1/session', undefined, [pusher, reader, manager]],
    ] as const) {
      for (const user of [pusher, reader, manager, all]) {
        const isAllowed = user === all || allowed.some((each) => each === user)
        const { status, text } = await user!.call(method, path, body)
        assert.equal(status, isAllowed ? 200 : 403, `${method} ${path}: ${text}`)
        if (!isAllowed) assert.match(text, /"KEY_LACKS_SCOPE","message":"This key lacks the scope /)
      }
    }
  }
  const { body } = await pusher!.call('GET', '/v1/session')
  assert.deepEqual([body.scopes, body.bots], [['push'], null])
})

test('a key for some bots may not touch others, and its calls about all bots are refused', async () => {
  const server = await shared()
  const [mine, other] = await registerBots(server)
  const user = await KeyUser.make(server, {
    name: newName(),
    scopes: ['push', 'read', 'manage'],
    bots: [mine],
  })
  assert.equal(await user.push(mine), '200')
  assert.equal(await user.push(other), 'KEY_LACKS_BOT')
  assert.equal((await user.call('GET', `/v1/bots/${mine}`)).status, 200)
  assert.equal((await user.call('GET', '/v1/shards')).status, 200)
  for (const [method, path] of [
    ['GET', `/v1/bots/${other}`],
    ['DELETE', `/v1/bots/${other}`],
    ['GET', `/v1/bots/0${other}`],
    ['GET', '/v1/summary'],
    ['GET', '/v1/history'],
    ['GET', '/v1/events'],
    ['GET', '/metrics'],
  ] as const) {
    const { status, body } = await user.call(method, path)
    assert.deepEqual([status, body.error.code], [403, 'KEY_LACKS_BOT'], path)
  }
  for (const query of ['', '?limit=1', '?sort=pending', `?search=${other}`, `?after=${mine}`]) {
    const { text: listed, body: list } = await user.call('GET', `/v1/bots${query}`)
    assert.doesNotMatch(listed, new RegExp(`${other}`))
    const found = list.bots.map((each: { bot_id: number }) => each.bot_id)
    assert.deepEqual(
      found,
      query.includes(`${other}`) || query.includes('after') ? [] : [mine],
      query,
    )
  }
  const bot = { bot_id: mine, first_name: 'Test', username: 'test_bot' }
  const registered = await user.call('POST', '/v1/bots', bot)
  assert.equal(registered.body.error.code, 'KEY_LACKS_BOT')
  const stream = new RawPushStream(user)
  const results = await Promise.all(
    [mine, other, mine, other].map((botId) => stream.push({ bot_id: botId }, message)),
  )
  assert.deepEqual(
    results.map((result) => result?.error?.code),
    [undefined, 'KEY_LACKS_BOT', undefined, 'KEY_LACKS_BOT'],
  )
  assert.equal(await stream.end(), true)
  assert.equal((await server.admin('GET', `/v1/bots/${other}`)).body.pending, 0)
  const { text } = await server.admin('GET', '/metrics')
  assert.match(text, /updates_refused_total\{code="KEY_LACKS_BOT"\} 2/)
})

test('a revoked key is refused by every worker as soon as the call has returned', async (t) => {
  const server = await shared()
  const bots = await registerBots(server)
  for (let round = 0; round < 20; round++) {
    const user = await KeyUser.make(server, { name: newName(), scopes: ['push'] })
    // The primary gives each of these connections to the worker of the bot, and the second push uses it again.
    const pushers = [...bots, ...bots].map((botId) => user.pusher(botId))
    t.after(() => pushers.map((each) => each.close()))
    assert.deepEqual(await Promise.all(pushers.map((each) => each.push())), [200, 200, 200, 200])
    const { body } = await server.admin('DELETE', `/v1/keys/${user.keyId}`)
    assert.deepEqual(body, { key_id: user.keyId, revoked: true })
    assert.deepEqual(await Promise.all(pushers.map((each) => each.push())), [401, 401, 401, 401])
    for (const each of pushers) each.close()
  }
  assert.equal((await server.admin('DELETE', '/v1/keys/0123456789abcdef')).status, 404)
})

test('streams, tails and sessions end with their key', async (t) => {
  const server = await shared()
  const [botId] = await registerBots(server)
  const user = await KeyUser.make(server, { name: newName(), scopes: ['all'] })
  const login = await user.call('POST', '/v1/session')
  const cookie = String(login.headers['set-cookie']).split(';', 1)[0] ?? ''
  const seen = async (path: string): Promise<number> =>
    (await send({ method: 'GET', url: server.privateUrl + path, headers: { cookie } })).status
  assert.equal(await seen('/v1/summary'), 200)
  const tail = await TailReader.open(user, `/v1/bots/${botId}/tail`)
  t.after(() => tail.close())
  const events = await TailReader.open(user, '/v1/events')
  t.after(() => events.close())
  assert.equal(events.status, 200)
  const stream = new RawPushStream(user)
  t.after(() => stream.destroy())
  assert.notEqual((await stream.push({ bot_id: botId }, message))?.update_id, undefined)
  await tail.atLeast(1)
  const { body: child } = await user.call('POST', '/v1/keys', { name: newName(), scopes: ['push'] })
  const revoked = await server.admin('DELETE', `/v1/keys/${user.keyId}`)
  assert.deepEqual(revoked.body.also_revoked, [child.key_id])
  assert.equal(await user.at(server, child.key).push(botId), 'UNAUTHORIZED')
  assert.equal(await seen('/v1/summary'), 401)
  await until(() => tail.isEnded && events.isEnded)
  await stream.ended
  assert.equal((await server.admin('GET', `/v1/bots/${botId}`)).body.pending, 1)
})

test('a key takes a share of the tails and of the streams of events, not all of them', async (t) => {
  const server = await shared()
  const [botId] = await registerBots(server)
  const user = await KeyUser.make(server, { name: newName(), scopes: ['all'] })
  const { body } = await user.call('POST', '/v1/keys', { name: newName(), scopes: ['read'] })
  const child = user.at(server, body.key)
  for (const [path, share] of [
    [`/v1/bots/${botId}/tail`, tailsMax * keyPlacesShare],
    ['/v1/events', eventStreamsMax * keyPlacesShare],
  ] as const) {
    const open = async (by: Pick<Server, 'privateUrl' | 'key'>): Promise<number> => {
      const tail = await TailReader.open(by, path)
      t.after(() => tail.close())
      return tail.status
    }
    // Either worker may get a stream of events.
    for (let nth = 0; nth < 4 * share; nth++) await open(nth % 2 === 0 ? user : child)
    assert.deepEqual([await open(user), await open(child), await open(server)], [429, 429, 200])
  }
})

test('a rotated key works with both secrets for the overlap, and a rotation ends the sessions of the old one', async () => {
  const server = await shared()
  const [botId] = await registerBots(server)
  const user = await KeyUser.make(server, { name: newName(), scopes: ['push'] })
  const path = `/v1/keys/${user.keyId}/rotate`
  const rotated = await server.admin('POST', path, { overlap: 600 })
  const second = user.at(server, rotated.body.key)
  assert.deepEqual([await user.push(botId), await second.push(botId)], ['200', '200'])
  const { body } = await server.admin('GET', '/v1/keys')
  const listed = body.keys.find((key: { key_id: string }) => key.key_id === user.keyId)
  assert.equal(typeof listed.old_secret_ends, 'number')
  await until(async () => {
    const { body: later } = await server.admin('GET', '/v1/keys')
    return later.keys.every(
      (key: { key_id: string; last_used: number | null }) =>
        key.key_id !== user.keyId || key.last_used !== null,
    )
  }, 20_000)
  const login = await second.call('POST', '/v1/session')
  const cookie = String(login.headers['set-cookie']).split(';', 1)[0] ?? ''
  const third = user.at(server, (await server.admin('POST', path)).body.key)
  assert.deepEqual(
    [await user.push(botId), await second.push(botId), await third.push(botId)],
    ['UNAUTHORIZED', 'UNAUTHORIZED', '200'],
  )
  const url = `${server.privateUrl}/v1/session`
  assert.equal((await send({ method: 'GET', url, headers: { cookie } })).status, 401)
})

test('a key that is over its limit gets 429, and all workers count together', async () => {
  const server = await shared()
  const bots = await registerBots(server)
  for (const limit of ['updates_per_second', 'requests_per_second']) {
    const user = await KeyUser.make(server, { name: newName(), scopes: ['push'], [limit]: 2 })
    const beganMs = performance.now()
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, nth) =>
        user.call('POST', `/v1/bots/${bots[nth % 2]}/updates`, message),
      ),
    )
    const seconds = (performance.now() - beganMs) / 1_000
    const refused = answers.filter(({ status }) => status === 429)
    const accepted = answers.length - refused.length
    assert(refused.length > 0)
    assert(accepted >= 2 && accepted <= 2 + 2 * seconds, `${accepted} within ${seconds} s`)
    for (const { body, headers } of refused) {
      assert.equal(body.error.code, 'KEY_OVER_LIMIT')
      assert.match(body.error.message, new RegExp(limit))
      assert(Number(headers['retry-after']) >= 1)
    }
  }
})

test('a target that is spelled in another way is counted, too', async () => {
  const server = await shared()
  const [botId] = await registerBots(server)
  const user = await KeyUser.make(server, {
    name: newName(),
    scopes: ['push'],
    updates_per_second: 1,
  })
  const targets = [`/v1/bots/${botId}/%75pdates`, `/%76%31/bots/${botId}/updates`]
  const statuses: number[] = []
  for (let times = 0; times < 10; times++) {
    for (const target of targets) {
      const answer = await send({
        method: 'POST',
        url: `${server.privateUrl}${target}`,
        headers: { authorization: `Bearer ${user.key}` },
        body: JSON.stringify(message),
      })
      statuses.push(answer.status)
    }
  }
  assert(statuses.includes(200) && statuses.includes(429), statuses.join())
})

test('the streams of a key are paced to its limit together, and none of their updates is refused', async () => {
  const server = await shared()
  const bots = await registerBots(server)
  const user = await KeyUser.make(server, {
    name: newName(),
    scopes: ['push'],
    updates_per_second: 20,
  })
  const beganMs = performance.now()
  const streams = [new RawPushStream(user), new RawPushStream(user)]
  const results = streams.flatMap((stream) =>
    Array.from({ length: 30 }, (_, nth) => stream.push({ bot_id: bots[nth % 2]! }, message)),
  )
  assert((await Promise.all(results)).every((result) => result?.update_id !== undefined))
  const tookMs = performance.now() - beganMs
  assert(tookMs > 1_900, `60 updates took ${tookMs} ms, at 20 per second after a second's worth`)
  await Promise.all(streams.map((stream) => stream.end()))
})

test('the client for producers repeats pushes that are over the limit of its key, and its streams are paced', async (t) => {
  const server = await shared()
  const [botId] = await registerBots(server)
  const { key } = await KeyUser.make(server, {
    name: newName(),
    scopes: ['push'],
    updates_per_second: 10,
  })
  const client = new PostboteClient({ url: server.privateUrl, key, retries: 20 })
  t.after(() => client.close())
  await Promise.all(Array.from({ length: 20 }, () => client.push(botId, message)))
  const items = Array.from({ length: 20 }, () => ({ botId, update: message }))
  for await (const result of client.pushAll(items)) {
    assert('result' in result, JSON.stringify(result))
  }
  assert.equal((await server.admin('GET', `/v1/bots/${botId}`)).body.pending, 40)
})

test('a key makes keys only if it may do everything, and none that may do more than itself', async () => {
  const server = await shared()
  const all = await KeyUser.make(server, {
    name: newName(),
    scopes: ['all'],
    updates_per_second: 10,
  })
  const child = await all.call('POST', '/v1/keys', {
    name: newName(),
    scopes: ['all'],
    updates_per_second: 10,
  })
  assert.equal(child.body.created_by, all.keyId)
  for (const more of [{}, { updates_per_second: 11 }]) {
    const wanted = { name: newName(), scopes: ['push'], ...more }
    const { status, body } = await all.call('POST', '/v1/keys', wanted)
    assert.deepEqual([status, body.error.code], [403, 'KEY_EXCEEDED'])
  }
  const restricted = await KeyUser.make(server, {
    name: newName(),
    scopes: ['all'],
    bots: [1_000],
  })
  const wanted = { name: newName(), scopes: ['push'], bots: [1_000] }
  const refused = await restricted.call('POST', '/v1/keys', wanted)
  assert.equal(refused.body.error.code, 'KEY_LACKS_BOT')
})

test('wrong parameters of a key are refused, and each with what is expected', async () => {
  const server = await shared()
  for (const wrong of [
    {},
    { name: '', scopes: ['push'] },
    { name: 'a\nb', scopes: ['push'] },
    { name: '\u009b31m', scopes: ['push'] },
    { name: '\u202eevil', scopes: ['push'] },
    { name: 'sh\u200bop', scopes: ['push'] },
    { name: 'shop\u{e0041}', scopes: ['push'] },
    { name: '\u3164', scopes: ['push'] },
    { name: 'x', scopes: [] },
    { name: 'x', scopes: ['pull'] },
    { name: 'x', scopes: ['push', 'push'] },
    { name: 'x', scopes: ['push'], bots: [] },
    { name: 'x', scopes: ['push'], bots: [1] },
    { name: 'x', scopes: ['push'], updates_per_second: 0 },
    { name: 'x', scopes: ['push'], expires: 1_000_000 },
    { name: 'x', scopes: ['push'], limit: 3 },
  ]) {
    const { status, body } = await server.admin('POST', '/v1/keys', wrong)
    assert.deepEqual([status, body.error.code], [400, 'BAD_REQUEST'], JSON.stringify(wrong))
  }
  const name = newName()
  await KeyUser.make(server, { name, scopes: ['push'] })
  const { status, body } = await server.admin('POST', '/v1/keys', { name, scopes: ['push'] })
  assert.deepEqual([status, body.error.code], [409, 'KEY_EXISTS'])
})

test('postbote keys makes, lists, rotates and revokes keys, and other commands take them with --key-file', async (t) => {
  const server = await shared()
  const [botId] = await registerBots(server)
  const directory = temporaryDirectory(t)
  const postbote = (args: readonly string[], keyFile = join(server.dir, 'admin.key')) => {
    const where = ['--url', server.privateUrl, '--key-file', keyFile]
    return outputOf([...args, ...where])
  }
  const name = newName()
  const limits = ['--bots', String(botId), '--updates-per-second', '100', '--ttl', '3600']
  const text = await postbote(['keys', 'create', name, '--scopes', 'push,read', ...limits])
  const [, keyId = ''] = /^pbk_([0-9a-f]{16})_[\w-]{43}\n$/.exec(text) ?? []
  const lines = (await postbote(['keys', 'list'])).split('\n')
  const line = lines.find((each) => each.startsWith(keyId)) ?? ''
  assert(line.includes(name), line)
  assert.match(line, new RegExp(`push,read +${botId} +100 +- +2\\d{3}-\\S+Z +-$`))
  const file = join(directory, 'key')
  writeFileSync(file, text, { mode: 0o600 })
  assert.match(await postbote(['push', String(botId), '{"message":{}}'], file), /\d/)
  await assert.rejects(postbote(['keys', 'list'], file), /403 KEY_LACKS_SCOPE: This key lacks/)
  const rotated = await postbote(['keys', 'rotate', keyId])
  assert.match(rotated, new RegExp(`^pbk_${keyId}_[\\w-]{43}\n$`))
  await assert.rejects(postbote(['bots', 'show', String(botId)], file), /401 UNAUTHORIZED/)
  writeFileSync(file, rotated)
  assert.match(await postbote(['bots', 'show', String(botId)], file), /pending/)
  assert.equal(await postbote(['keys', 'revoke', keyId]), `revoked ${keyId}\n`)
  await assert.rejects(postbote(['keys', 'revoke', keyId]), /404 UNKNOWN_KEY/)
})
