/** The commands that call a running server, and those about this machine, as programs with their output and exit codes. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import type { ParsedCommand } from '../../src/cli/commands/command-row.ts'
import { commandTable } from '../../src/modules/command-table.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { mainFile, postbote as runMain } from '../support/programs/postbote.ts'
import type { CommandEnd } from '../support/programs/run-in-process.ts'

const localServer = shared((owner) => startServer(owner, { flags: ['--local'] }))

/** Runs a command against a server, which it finds by the options for that. */
function postbote(server: Server, args: readonly string[], input = ''): Promise<CommandEnd> {
  const place = ['--dir', server.dir, '--admin-port', new URL(server.privateUrl).port]
  return runMain([...args, ...place], {}, input)
}

test('bots are registered, listed, shown and removed, and get new tokens', async () => {
  const server = await localServer()
  const names = ['--first-name', 'Echo', '--username', 'echo_bot']
  const registered = await postbote(server, ['bots', 'register', '4711', ...names])
  assert.deepEqual([registered.code, registered.err], [0, ''])
  assert.match(registered.out, /^4711:\S{35}\n$/)

  const listed = await postbote(server, ['bots', 'list', '--after', '4710', '--limit', '1'])
  assert.match(
    listed.out,
    /^bot_id {2}username {2}health {2}pending {2}oldest {2}mode {5}next_attempt\n {2}4711 {2}echo_bot {2}- {13}0 {2}- {7}polling {2}-\n$/,
  )
  assert.equal(listed.err, 'there may be more bots: --after 4711\n')
  const json = await postbote(server, ['bots', 'list', '--after=4710', '--limit=1', '--json'])
  const { bots } = JSON.parse(json.out)
  assert.deepEqual([bots.length, bots[0].bot_id, json.err], [1, 4_711, ''])

  const shown = await postbote(server, ['bots', 'show', '4711'])
  assert.match(shown.out, /^bot 4711 @echo_bot [^\n]+\n\nbot_id +4711\n/)
  assert.match(shown.out, /^mode +polling$/m)
  assert.match(shown.out, /^pending +0$/m)
  // Nothing was ever in its /test/ queue.
  assert.doesNotMatch(shown.out, /test/)
  const whole = await postbote(server, ['bots', 'show', '4711', '--json'])
  const { body } = await server.admin('GET', '/v1/bots/4711')
  assert.deepEqual(withoutReason(JSON.parse(whole.out)), withoutReason(body))

  const token = await postbote(server, ['bots', 'token', '4711'])
  assert.match(token.out, /^4711:\S{35}\n$/)
  assert.equal((await server.call(registered.out.trim(), 'getMe')).status, 401)
  assert.equal((await server.call(token.out.trim(), 'getMe')).status, 200)

  const unconfirmed = await postbote(server, ['bots', 'remove', '4711'])
  assert.deepEqual([unconfirmed.code, unconfirmed.out], [2, ''])
  assert.match(unconfirmed.err, /^postbote: bots remove: expected --yes/)
  assert.equal(
    (await postbote(server, ['bots', 'remove', '4711', '--yes'])).out,
    'removed bot 4711\n',
  )
  const gone = await postbote(server, ['bots', 'show', '4711'])
  assert.deepEqual(
    [gone.code, gone.err],
    [
      4,
      'postbote: the server refused the call: 404 UNKNOWN_BOT: No bot with the id 4711 is registered\n',
    ],
  )
})

/** The reason says for how long nobody has polled. */
function withoutReason(bot: Readonly<Record<string, unknown>>): object {
  const same: object = JSON.parse(JSON.stringify(bot), (name, value) =>
    name === 'health_reason' ? 'any' : value,
  )
  return same
}

test('bots list reads as many pages as it needs', async (t) => {
  const server = await startServer(t)
  const ids = Array.from({ length: 1_203 }, (_, nth) => 10_000 + nth)
  const names = { first_name: 'Listed', username: 'listed_bot' }
  const lines = ids.map(
    (id) => `${JSON.stringify({ ...names, bot_id: id, idempotency_key: `${id}` })}\n`,
  )
  const registered = await fetch(`${server.privateUrl}/v1/registrations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/x-ndjson' },
    body: lines.join(''),
  })
  assert.equal((await registered.text()).match(/"token"/g)?.length, ids.length)
  const { code, out, err } = await postbote(server, ['bots', 'list', '--limit', '5000', '--json'])
  assert.equal(code, 0, err)
  const listed: readonly { readonly bot_id: number }[] = JSON.parse(out).bots
  assert.deepEqual(
    listed.map(({ bot_id: id }) => id),
    ids,
  )
  const part = await postbote(server, ['bots', 'list', '--limit', '1100'])
  assert.equal(part.out.split('\n').length, 1_102)
})

test('bots list selects and sorts as the server does, and refuses what cannot be', async () => {
  const server = await localServer()
  for (const [botId, username] of [
    [4_721, 'select_one_bot'],
    [4_722, 'select_two_bot'],
  ] as const) {
    const bot = { bot_id: botId, first_name: 'Select', username }
    assert.equal((await server.admin('POST', '/v1/bots', bot)).status, 200)
  }
  await server.push(4_721, { message: { text: 'one' } })
  await postbote(server, ['pause', '4722'])
  const listed = async (...args: string[]): Promise<readonly string[]> => {
    const { code, out, err } = await postbote(server, [
      'bots',
      'list',
      '--prefix',
      'SELECT_',
      ...args,
    ])
    assert.equal(code, 0, err)
    return out.trimEnd().split('\n').slice(1)
  }
  const rows = [
    /^ *4721 +select_one_bot +(?:-|unpolled) +1 +\d+ s +polling +-.*$/,
    /^ *4722 +select_two_bot +paused +0 +- +polling +-.*$/,
  ] as const
  assertRows(await listed(), rows)
  assertRows(await listed('--state', 'paused'), [rows[1]])
  assertRows(await listed('--sort', 'pending'), rows)
  assertRows(await listed('--after', '4721'), [rows[1]])
  assert.deepEqual(await listed('--state', 'failing'), [])
  const cut = await postbote(server, ['bots', 'list', '--sort=oldest_age', '--limit=1'])
  assert.equal(cut.err, 'there may be more bots: raise --limit\n')
  for (const [args, problem] of [
    [['--sort=pending', '--after=4721'], /^postbote: --after: expected none with --sort/],
    [['--sort=pending', '--limit=1001'], /^postbote: --limit: expected at most 1000 with --sort/],
    [
      ['--state=odd'],
      /^postbote: --state: expected one of healthy, degraded, behind, failing, unpolled, paused/,
    ],
    [['--prefix=a-b'], /^postbote: --prefix: expected 1 to 64 letters, digits or underscores/],
  ] as const) {
    const { code, out, err } = await postbote(server, ['bots', 'list', ...args])
    assert.deepEqual([code, out], [2, ''])
    assert.match(err, problem)
  }
})

function assertRows(lines: readonly string[], expected: readonly RegExp[]): void {
  assert.equal(lines.length, expected.length, lines.join('\n'))
  for (const [nth, row] of expected.entries()) assert.match(lines[nth] ?? '', row)
}

test('summary shows the sums, and limits shows, sets and removes the limit of a queue', async () => {
  const server = await localServer()
  const { botId } = await server.register()
  await server.push(botId, { message: { text: 'one' } })
  const summary = await postbote(server, ['summary'])
  assert.deepEqual([summary.code, summary.err], [0, ''])
  assert.match(
    summary.out,
    /^[\d,]+ bots?, .*; [\d,]+ updates? waits?, the oldest for \d+ (?:s|min); \d+ dead letters?\n\nbots /,
  )
  assert.match(summary.out, /^mode +polling \d+, webhook \d+$/m)
  assert.match(summary.out, /^oldest_age +\d+ (?:s|min)\noldest_bot_id +\d+\noldest_test +no$/m)
  assert.match(summary.out, /^delivery webhook +p50 (?:-|[\d.]+ m?s), p99 (?:-|[\d.]+ m?s)$/m)
  const history = await postbote(server, ['server', 'history', '--minutes', '1'])
  assert.match(history.out, /^time +pushed +confirmed .*polling_p99_ms *\n\d{4}-\d\d-\d\dT.*\n$/)
  const sums = JSON.parse((await postbote(server, ['summary', '--json'])).out)
  const { body } = await server.admin('GET', '/v1/summary')
  assert.deepEqual(Object.keys(sums), Object.keys(body))

  const limits = async (...args: string[]): Promise<string> => {
    const { out, err } = await postbote(server, ['limits', `${botId}`, ...args])
    return out + err
  }
  const isFree = `deliveries of bot ${botId} are not limited\n`
  assert.equal(await limits(), isFree)
  const isLimited = `deliveries of bot ${botId} are limited to 2.5 per second\n`
  assert.equal(await limits('--deliveries-per-second', '2.5'), isLimited)
  assert.equal(await limits(), isLimited)
  assert.equal(await limits('--test'), isFree)
  assert.equal((await server.admin('GET', `/v1/bots/${botId}`)).body.deliveries_per_second, 2.5)
  assert.equal(
    await limits('--deliveries-per-second=none', '--json'),
    '{"deliveries_per_second":null}\n',
  )
  assert.match(
    await limits('--deliveries-per-second=0'),
    /^postbote: --deliveries-per-second: expected a number from 0\.1 to 10000, or none, got "0"\n$/,
  )
})

/** The commands that show what a server has: of all bots, or of one. This one has no relay. */
const lists = commandTable.filter(
  (row): row is ParsedCommand =>
    row.kind === 'parsed' &&
    row.name !== 'relay show' &&
    /(?:^| )(?:list|show|summary|history|reasons|types|audit|attempts)$/.test(row.name) &&
    row.arguments.every(({ name }) => name === '<bot_id>'),
)

test('a reader that has seen enough is no failure of a command, and a full disk is one', async () => {
  const server = await localServer()
  const place = ['--dir', server.dir, '--admin-port', new URL(server.privateUrl).port]
  const { botId } = await server.register()
  const called = lists.map(({ name, arguments: words }) => {
    return [...name.split(' '), ...words.map(() => `${botId}`), ...place]
  })
  assert(called.length > 10)
  for (const args of [['--help'], ['bots', 'list', '--json', ...place], ...called]) {
    const child = spawn(process.execPath, [mainFile, ...args])
    const ended = once(child, 'close')
    child.stdout.destroy()
    assert.equal(await text(child.stderr).then(withoutHints), '', args.join(' '))
    assert.deepEqual(await ended, [0, null])
  }
  const full = openSync('/dev/full', 'w')
  const child = spawn(process.execPath, [mainFile, '--help'], { stdio: ['ignore', full, 'pipe'] })
  const ended = once(child, 'close')
  assert(child.stderr !== null)
  assert.equal(await text(child.stderr), 'postbote: cannot write to standard output (ENOSPC)\n')
  assert.deepEqual(await ended, [1, null])
  closeSync(full)
})

function withoutHints(said: string): string {
  return said.replace(/^there may be more bots: .*\n/, '')
}

test('an update is pushed from an argument or from standard input, byte for byte', async () => {
  const server = await localServer()
  const { botId, token } = await server.register(4_801)
  const first = await postbote(server, ['push', `${botId}`, '{"message":{"text":"one"}}'])
  assert.match(first.out, /^update \d+\n$/)
  const update = '{"message": {"text":"\\u0074wo"} }\n'
  const key = ['--idempotency-key', 'order-42', '--ordering-key', 'a&b', '--ttl', '60']
  const second = await postbote(server, ['push', `${botId}`, ...key, '--json'], update)
  const again = await postbote(server, ['push', `${botId}`, ...key], update)
  assert.deepEqual([second.code, again.code], [0, 0])
  const { update_id: id } = JSON.parse(second.out)
  assert.equal(again.out, `update ${id} was stored before, with this key\n`)
  const filtered = await postbote(server, ['push', `${botId}`, '{"chat_member":{}}'])
  assert.deepEqual([filtered.code, filtered.out.startsWith('filtered: ')], [0, true])
  const polled = await server.call(token, 'getUpdates')
  assert.ok(polled.text.includes('"message": {"text":"\\u0074wo"}'))
  assert.equal(polled.body.result.length, 2)
  const wrong = await postbote(server, ['push', `${botId}`, '{"massage":{}}'])
  assert.deepEqual([wrong.code, /400 BAD_UPDATE: /.test(wrong.err)], [4, true])
  await postbote(server, ['push', `${botId}`, '--test', '{"message":{"text":"three"}}'])
  assert.equal((await server.admin('GET', `/v1/bots/${botId}`)).body.test.pending, 1)
  const shown = await postbote(server, ['bots', 'show', `${botId}`])
  assert.match(shown.out, /^\/test\/ pending +1$/m)
})

/** Registers a bot whose webhook has refused an update for good. */
async function botWithDeadLetter(
  t: TestContext,
  server: Server,
): Promise<{ readonly botId: number; readonly updateId: number | undefined }> {
  const sink = await startSink(t, (_delivery, response) =>
    response.writeHead(400, { 'Webhook-Delivery': 'abort-message' }).end(),
  )
  const { botId, token } = await server.register()
  const { body } = await server.call(token, 'setWebhook', { url: sink.url('/') })
  assert.equal(body.ok, true)
  const updateId = await server.push(botId, { message: { text: 'refused', n: 1 } })
  await until(async () => (await server.admin('GET', `/v1/bots/${botId}`)).body.dead_letters === 1)
  return { botId, updateId }
}

test('attempts, pause and resume, and everything about dead letters', async (t) => {
  const server = await localServer()
  const { botId, updateId } = await botWithDeadLetter(t, server)
  const bot = `${botId}`
  const attempts = await postbote(server, ['attempts', bot])
  assert.match(attempts.out, /^time +update_id +status +error +ms +next_retry +address\n/)
  assert.match(attempts.out, new RegExp(`Z +${updateId} +400 .* 127\\.0\\.0\\.1\n`))
  const headers = await postbote(server, ['attempts', bot, '--headers'])
  assert.match(headers.out, /^time .* response_headers\n/)
  assert.match(
    headers.out,
    /\n\nrequests are now: POST to 127\.0\.0\.1:\d+ with Content-Type: application\/json; User-Agent: Postbote\/\S+\n$/,
  )
  const checked = await postbote(server, ['webhook', 'check', bot])
  assert.match(
    checked.out,
    /^step +state +ms +text\nname +skipped +- .*\n(.*\n){3}post +failed +\d+ +Wrong response from the webhook: 400 Bad Request\n\nPush a test update.*\.\n$/,
  )
  assert.deepEqual([checked.code, checked.err], [1, ''])
  const asJson = await postbote(server, ['webhook', 'check', bot, '--json'])
  assert.deepEqual([asJson.code, JSON.parse(asJson.out).status], [1, 400])

  assert.equal(
    (await postbote(server, ['pause', bot])).out,
    `deliveries of bot ${bot} are paused\n`,
  )
  assert.equal((await server.admin('GET', `/v1/bots/${bot}`)).body.paused, true)

  const listed = await postbote(server, ['dead-letters', 'list', bot])
  assert.match(
    listed.out,
    new RegExp(`\\n *${updateId} +\\S+Z +refused +message .*\\ntotal  1\\n$`),
  )
  const groups = await postbote(server, ['dead-letters'])
  assert.match(groups.out, /^count +bots +reason .*\n +1 +1 +refused +400 Bad Request /)
  assert.equal(
    groups.err.replaceAll(/\s+/g, ' '),
    `next: postbote dead-letters list ${bot} --reason refused (each of them), postbote dead-letters replay ${bot} --all --reason refused (deliver them again) `,
  )
  const shown = await postbote(server, ['dead-letters', 'show', bot, `${updateId}`])
  assert.ok(shown.out.endsWith('\n\n{"message":{"text":"refused","n":1}}\n'), shown.out)
  for (const action of ['replay', 'drop']) {
    const neither = await postbote(server, ['dead-letters', action, bot])
    const both = await postbote(server, ['dead-letters', action, bot, `${updateId}`, '--all'])
    for (const { code, err } of [neither, both]) {
      assert.equal(code, 2)
      assert.equal(err, `postbote: dead-letters ${action}: expected either an update_id or --all\n`)
    }
  }
  const replayed = await postbote(server, ['dead-letters', 'replay', bot, '--all', '--json'])
  assert.equal(JSON.parse(replayed.out).replayed[0].update_id, updateId)
  const none = await postbote(server, ['dead-letters', 'drop', bot, '--all'])
  assert.equal(none.out, 'dropped 0 dead letters\n')
  const unknown = await postbote(server, ['dead-letters', 'drop', bot, `${updateId}`])
  assert.deepEqual([unknown.code, /UNKNOWN_DEAD_LETTER/.test(unknown.err)], [4, true])
  const nothing = await postbote(server, ['retry', bot])
  assert.equal(
    nothing.out,
    `0 chats or other keys of bot ${bot} are delivered now; see postbote attempts ${bot}\n`,
  )
  const resumed = await postbote(server, ['resume', bot, '--json'])
  assert.deepEqual(JSON.parse(resumed.out), { paused: false })
  await until(async () => (await server.admin('GET', `/v1/bots/${bot}`)).body.dead_letters === 1)
  const again = await postbote(server, ['dead-letters', 'replay', bot, '--all', '--wait'])
  assert.match(again.out, /^update_id +new_update_id +outcome +detail\n.* dead letter +refused\n$/)
  assert.equal(again.code, 1, again.err)
})

test('a reload shows its steps, and doctor judges a webhook as the running server does', async (t) => {
  const server = await localServer()
  const { code, err } = await postbote(server, ['reload'])
  assert.match(err, / reloading: .*\n[\s\S]*changed hands .*\n[\s\S]* reloaded\n$/)
  assert.equal(code, 0)
  const sink = await startSink(t, (_delivery, response) => response.end())
  const doctor = await postbote(server, ['doctor', '--webhook-url', sink.url('/')])
  assert.match(doctor.out, /accepts connections at 127\.0\.0\.1/)
})

test('help of a command that does not exist is an error', async () => {
  const { code, out, err } = await runMain(['nosuch', '--help'])
  assert.deepEqual([code, out], [2, ''])
  assert.match(err, /^postbote: unknown command "nosuch"\. See postbote help/)
})

test('with --url the key of this machine is never sent, and --key-file is required', async (t) => {
  const server = await localServer()
  const url = ['bots', 'list', '--limit=1', '--url', server.privateUrl]
  const without = await runMain([...url, '--dir', server.dir])
  assert.deepEqual(
    [without.code, without.err],
    [2, 'postbote: --url: expected --key-file FILE with a key of that server\n'],
  )
  const keyFile = join(temporaryDirectory(t), 'server.key')
  writeFileSync(keyFile, server.key)
  assert.equal((await runMain([...url, '--key-file', keyFile])).code, 0)
  writeFileSync(keyFile, 'x'.repeat(43))
  const wrong = await runMain([...url, '--key-file', keyFile])
  assert.deepEqual([wrong.code, /401/.test(wrong.err)], [4, true])
  assert.doesNotMatch(wrong.err, /xxx/)
  const nobody = await runMain(['bots', 'list', '--url=http://127.0.0.1:1', '--key-file', keyFile])
  assert.deepEqual(
    [nobody.code, nobody.err],
    [1, 'postbote: no server responds at http://127.0.0.1:1 (ECONNREFUSED)\n'],
  )
})

test('doctor knows the ports of the server that runs, and says what must change for a second one', async (t) => {
  const server = await localServer()
  const botPort = new URL(server.botUrl).port
  const adminPort = new URL(server.privateUrl).port
  const ports = [`--http-port=${botPort}`, `--admin-port=${adminPort}`]
  const place = ['--http-ip-address=127.0.0.1', ...ports, '--disk-reserve=0']
  const well = await runMain(['doctor', '--dir', server.dir, ...place])
  assert.match(
    well.out,
    new RegExp(`^ok {3}the server that runs on .* has 127\\.0\\.0\\.1:${botPort}$`, 'm'),
  )
  assert.doesNotMatch(well.out, /another program/)
  const dir = join(temporaryDirectory(t), 'data')
  const ill = await runMain(['doctor', '--dir', dir, ...place, '--json'])
  assert.equal(ill.code, 1)
  const { findings }: { findings: { level: string; text: string }[] } = JSON.parse(ill.out)
  const bad = findings.filter(({ level, text: said }) => level === 'bad' && said.includes('port'))
  assert.deepEqual(
    bad.map(({ text: said }) => said),
    [
      `another program has 127.0.0.1:${botPort}: end it, or choose another --http-port`,
      `another program has 127.0.0.1:${adminPort}: end it, or choose another --admin-port`,
    ],
  )
})

test('completion prints the script of a shell, and an unknown shell is an error', async () => {
  const bash = await runMain(['completion', 'bash'])
  assert.match(bash.out, /\ncomplete -F _postbote postbote\n$/)
  const unknown = await runMain(['completion', 'tcsh'])
  assert.deepEqual(
    [unknown.code, unknown.err],
    [2, 'postbote: <shell>: expected one of bash, zsh, fish, got "tcsh"\n'],
  )
})
