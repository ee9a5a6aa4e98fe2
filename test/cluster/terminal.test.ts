/** What an operator sees of a server in trouble, at terminals of several widths. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { widthOf } from '../../src/cli/output/width-of.ts'
import { type CommandEnd, runInProcess } from '../support/programs/run-in-process.ts'
import { startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

/** Bots with all troubles, and names and keys of all lengths. */
const troubled = shared(async (owner) => {
  const server = await startServer(owner, { flags: ['--local', '--retain=1h', '--trace-context'] })
  const ids = { healthy: 4_711, failing: 77_000_000_001, paused: 90_071_992_547, polling: 123 }
  const sink = await startSink(owner, ({ path, text }, response) => {
    const isRefused = text.includes('refused')
    if (isRefused) response.writeHead(400, { 'Webhook-Delivery': 'abort-message' })
    else if (path === '/failing') response.writeHead(503, 'Service Unavailable, or its database')
    response.end('no '.repeat(20))
  })
  const names = { healthy: '日本語の名前です長い名前', failing: 'F', paused: 'P', polling: 'Q' }
  const tokens = new Map<string, string>()
  for (const [kind, id] of Object.entries(ids)) {
    const first_name = new Map(Object.entries(names)).get(kind)
    const username = `${kind}_${'and_its_name_is_long_'.repeat(kind === 'failing' ? 2 : 1)}bot`
    const { body } = await server.admin('POST', '/v1/bots', { bot_id: id, first_name, username })
    tokens.set(kind, body.token)
  }
  const call = (kind: string, method: string, parameters = {}): Promise<unknown> =>
    server.call(tokens.get(kind) ?? '', method, parameters)
  const push = (id: number, text: string, nth = 0): Promise<number | undefined> => {
    const chat = { id: -1_001_234_567_890 - nth, type: 'supergroup', title: 'x' }
    return server.push(id, { message: { message_id: 1, date: 1, chat, text } })
  }
  await call('healthy', 'setWebhook', { url: sink.url('/healthy') })
  await push(ids.healthy, 'taken')
  await sink.atLeast(1)
  await call('failing', 'setWebhook', { url: sink.url('/failing') })
  const refused = await push(ids.failing, 'refused')
  await sink.atLeast(2)
  for (const nth of [1, 2, 3]) await push(ids.failing, 'waits', nth)
  await call('paused', 'setWebhook', { url: sink.url('/healthy') })
  await server.admin('POST', `/v1/bots/${ids.paused}/pause`)
  await push(ids.paused, 'waits')
  await push(ids.polling, 'nobody polls')
  const key = { name: 'a_key_with_a_name_that_is_rather_long_for_the_night', scopes: ['read'] }
  await server.admin('POST', '/v1/keys', key)
  await server.admin('POST', `/v1/bots/${ids.healthy}/portal`, { ttl: 60 })
  const replay = await server.admin('POST', `/v1/bots/${ids.healthy}/updates/replay`, {})
  await until(async () => {
    const { body } = await server.admin('GET', `/v1/bots/${ids.failing}`)
    return body.health === 'failing' && body.dead_letters === 1
  })
  const place = [`--dir=${server.dir}`, `--admin-port=${new URL(server.privateUrl).port}`]
  const at = (columns: number | undefined, ...args: string[]): Promise<CommandEnd> =>
    runInProcess([...args, ...place], {
      env: {},
      input: '',
      ...(columns !== undefined && { columns }),
    })
  return { at, ids: { ...ids, refused: refused ?? 0, job: replay.body.job_id }, server }
})

/** Commands that show something, and lists among them. */
function commandsOf({
  failing,
  healthy,
  paused,
  polling,
  refused,
  job,
}: {
  readonly [kind: string]: number
}): readonly string[] {
  return [
    'bots list',
    'bots list --details',
    'bots list --state failing',
    'bots list --problems',
    ...[failing, healthy, paused, polling].map((id) => `bots show ${id}`),
    'summary',
    'server history --minutes 3',
    'server types',
    `webhook show ${failing}`,
    `webhook check ${failing}`,
    `attempts ${failing}`,
    `attempts ${failing} --bodies --headers`,
    `dead-letters list ${failing}`,
    `dead-letters show ${failing} ${refused}`,
    `updates list ${failing}`,
    `updates show ${failing} ${refused}`,
    `replays list ${healthy}`,
    `replays show ${healthy} ${job}`,
    `retention ${healthy}`,
    `limits ${failing}`,
    `portal list ${healthy}`,
    'keys list',
    'audit',
  ]
}

test('no line is longer than the terminal, and of what is shown only names are cut', async (t) => {
  const { at, ids } = await troubled()
  for (const command of commandsOf(ids)) {
    for (const columns of [60, 80, 140]) {
      const { out, err } = await at(columns, ...command.split(' '))
      t.diagnostic(`${columns}: postbote ${command}\n${out}${err}`)
      assert.notEqual(out, '', `${command}: ${err}`)
      if (command.includes(' show ')) assert.equal(err, '', 'it has no --wide')
      for (const line of out.split('\n')) {
        // An update is shown byte for byte.
        if (line.startsWith('{')) continue
        assert(widthOf(line) <= columns, `${command} at ${columns}: ${line}`)
      }
      for (const [cut = ''] of out.matchAll(/\S*…/g)) {
        assert.match(cut, /^(?:\w+_\w*|日\S*|\S*-1001\d*)…$/, `${command} at ${columns}: ${cut}`)
      }
    }
  }
})

test('bots show has what is wrong on top and fits a screen, and a list has each reason whole', async () => {
  const { at, ids, server } = await troubled()
  const healthy = await at(80, 'bots', 'show', `${ids.healthy}`)
  assert(healthy.out.split('\n').length <= 24, healthy.out)
  assert.match(healthy.out, new RegExp(`^bot ${ids.healthy} @healthy_\\w+ is healthy`))
  assert.doesNotMatch(healthy.out, /test|next_attempt/)
  const failing = await at(80, 'bots', 'show', `${ids.failing}`)
  const [sentence = ''] = failing.out.split('\n\n')
  assert.match(sentence.replaceAll('\n', ' '), / is failing: .*503 Service Unavailable/)
  const { body } = await server.admin('GET', '/v1/bots')
  const reasons = new Map<number, string | undefined>()
  for (const bot of body.bots) reasons.set(bot.bot_id, bot.health_reason)
  assert.match(reasons.get(ids.failing) ?? '', /503 Service Unavailable/)
  assert.equal(reasons.get(ids.healthy), undefined)
  for (const columns of [60, 80, 140]) {
    const { out } = await at(columns, 'bots', 'list', '--state=failing')
    assert.match(out.replaceAll(/\n +/g, ' '), /failing .*503 Service Unavailable.*no success yet/)
  }
})

test('webhook show says on top whether deliveries work, and an error is folded at its words', async () => {
  const { at, ids } = await troubled()
  const topOf = async (...args: string[]): Promise<string> => {
    const { out } = await at(80, 'webhook', 'show', ...args)
    return out.split('\n\n')[0]?.replaceAll('\n', ' ') ?? ''
  }
  assert.match(await topOf(`${ids.failing}`), /^bot 77000000001 @failing_\w+ is failing: .* 503 /)
  assert.match(await topOf(`${ids.healthy}`), /^bot 4711 @healthy_\w+ is healthy/)
  assert.match(await topOf(`${ids.polling}`), /^no webhook is set; bot 123 @polling_\w+ /)
  assert.match(
    await topOf(`${ids.failing}`, '--test'),
    /^no webhook is set; bot \d+ @\w+ \/test\/ is in polling mode/,
  )
  const json = await at(80, 'webhook', 'show', `${ids.failing}`, '--json')
  assert.equal(Object.keys(JSON.parse(json.out))[0], 'host')
  const { err } = await at(40, 'bots', 'show', 'nobody')
  assert.equal(
    err.replaceAll('\n', ' ').trimEnd(),
    (await at(undefined, 'bots', 'show', 'nobody')).err.trimEnd(),
  )
  for (const line of err.split('\n')) assert(line.length <= 40, line)
})

test('a list is CSV or JSON if that is asked for, and has the columns that were chosen', async () => {
  const { at, ids } = await troubled()
  const csv = await at(80, 'bots', 'list', '--output=csv')
  const [head = '', ...rows] = csv.out.split('\r\n')
  assert.match(head, /^bot_id,first_name,username,created_at,mode,/)
  assert.deepEqual([rows.length, csv.err], [5, ''])
  assert.match(
    rows[1] ?? '',
    /^4711,日本語の名前です長い名前,\w+,\d{4}-\d\d-\d\dT[\d:]+Z,webhook,0,,false,/,
  )
  const asJson = await at(80, 'bots', 'list', '--output=json')
  assert.equal(JSON.parse(asJson.out).bots.length, 4)
  const chosen = await at(80, 'bots', 'list', '--columns=mode,bot_id', '--columns=created_at')
  assert.match(chosen.out, /^mode +bot_id +created_at\npolling +123 +\d+ s ago\n/)
  const piped = await at(undefined, 'bots', 'list', '--columns=created_at')
  assert.match(piped.out, /^created_at\n\d{4}-\d\d-\d\dT[\d:]+Z\n/)
  const wide = await at(80, 'bots', 'list', '--wide')
  assert.match(wide.out, /failing_(?:and_its_name_is_long_){2}bot .*\d{4}-\d\d-\d\dT/)
  assert.equal(wide.err, '')
  const narrow = await at(40, 'bots', 'list')
  assert.match(narrow.err, /^--wide also shows health, pending,\n/)
  for (const [args, problem] of [
    [
      ['--columns=nosuch'],
      /^postbote: --columns: expected one of bot_id, first_name, .*"nosuch"\n$/,
    ],
    [['--columns='], /^postbote: --columns: expected one of bot_id, /],
    [['--json', '--output=csv'], /^postbote: --output: expected json with --json, got "csv"\n$/],
    [['--json', '--columns=mode'], /^postbote: --columns: expected none with JSON/],
    [['--output=xml'], /^postbote: --output: expected one of table, json, csv, got "xml"\n$/],
  ] as const) {
    const { code, out, err } = await at(undefined, 'bots', 'list', ...args)
    assert.deepEqual([code, out], [2, ''])
    assert.match(err, problem)
  }
  const empty = await at(80, 'dead-letters', 'list', `${ids.healthy}`, '--output=csv')
  assert.match(empty.out, /^update_id,type,[\w,]+\r\n$/)
  // Programs read all of a list that nobody looks at, with its ids and dates.
  const attempts = await at(undefined, 'attempts', `${ids.failing}`)
  assert.match(
    attempts.out,
    /^time +update_id +status +error .*\n\d{4}-\d\d-\d\dT[\d:.]+Z +\d+ +503 /,
  )
})
