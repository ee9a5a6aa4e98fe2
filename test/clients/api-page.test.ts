/**
 * Checks docs/use/api.md: runs every command of the page in a shell, in order, and compares each response with the page.
 *
 * A response must have the members of the page in the same order, values of the same types, and the same text in
 * errors. `...` stands for members that the page leaves out.
 */
import assert from 'node:assert/strict'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { run } from '../support/kit/child-process.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { type Receiver, startSink } from '../support/webhook/webhook-sink.ts'
import { until } from '../support/kit/until.ts'

const page = readFileSync(
  fileURLToPath(new URL('../../../docs/use/api.md', import.meta.url)),
  'utf8',
)
/** The bot and the dead letter of the page. */
const botId = 4711
const letterId = '29090073'

interface Example {
  readonly section: string
  readonly command: string
  readonly answer: string
}

test('every command of docs/use/api.md gets the response that the page shows', async (t) => {
  // On a busy machine the verification of a webhook takes longer.
  const server = await startServer(t, {
    workers: 2,
    flags: ['--local', '--webhook-verify-timeout=60'],
  })
  const home = temporaryDirectory(t)
  symlinkSync(server.dir, join(home, 'data'))
  writeFileSync(join(home, '.curlrc'), 'silent\nshow-error\n')
  const examples = examplesOf(page)
  assert(examples.length >= 25, `${examples.length} examples were found`)
  let section = ''
  for (const example of examples) {
    if (example.section !== section) await setScene(t, server, example.section)
    section = example.section
    await t.test(`${section}: ${example.command}`, () => tryOut(server, home, example))
  }
})

test('the table of docs/use/api.md lists every call', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const calls = callsOf(page)
  assert(calls.length > 20, String(calls.length))
  for (const { method, path } of calls) {
    // A stream would not end, but a wrong parameter is refused.
    const query = path === '/v1/events' ? '?type=none' : ''
    const { body } = await server.admin(method, path + query)
    assert.notEqual(body?.error?.code, 'NOT_FOUND', `${method} ${path}`)
  }
  const { body } = await server.admin('GET', '/v1/bots/4711/nothing')
  assert.equal(body.error.code, 'NOT_FOUND')
})

test('the comparison reports what is missing, new, out of order, or of another type', () => {
  assertSameForm('{"a":1,"b":[{"c":"x"}],"d":null}', '{"a":2,"b":[{"c":"y"},{"c":"z"}],"d":3}')
  assertSameForm('{"z":0,"a":1,"y":0,"b":2}', '{...,"a":1,"b":2,...}')
  const others = [
    ['{"a":1}', '{"a":1,"b":2}'],
    ['{"a":1,"b":2}', '{"a":1}'],
    ['{"b":2,"a":1}', '{"a":1,"b":2}'],
    ['{"b":2,"a":1}', '{...,"a":1,"b":2}'],
    ['{"a":"1"}', '{"a":1}'],
    ['{"a":false}', '{"a":true}'],
    ['{"a":[]}', '{"a":[1]}'],
    ['{"a":{}}', '{"a":null}'],
    ['{"error":{"code":"A","message":"x"}}', '{"error":{"code":"A","message":"y"}}'],
    ['{"a":1}\n{"a":2}', '{"a":1}'],
  ] as const
  for (const [actual, shown] of others) assert.throws(() => assertSameForm(actual, shown), actual)
})

/** Finds the examples in `console` blocks: a command follows `$ `, and its response extends to the next command. */
function examplesOf(text: string): Example[] {
  return text.split(/^## /m).flatMap((part) => {
    const section = part.slice(0, part.indexOf('\n'))
    return [...part.matchAll(/^```console\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
      block
        .split(/^\$ /m)
        .slice(1)
        .map((each) => {
          const end = each.indexOf('\n')
          return { section, command: each.slice(0, end), answer: each.slice(end + 1) }
        }),
    )
  })
}

/** `GET`, `DELETE /path` are two calls of one path. A path that starts with `.../` is one of a bot. */
function callsOf(text: string): { method: string; path: string }[] {
  return [...text.matchAll(/^\| (`[A-Z]{3,6}\b.*?`) \|/gm)].flatMap(([, cell = '']) => {
    const texts = [...cell.matchAll(/`([A-Z]+) ?([^`?]*)/g)]
    return texts.map(([, method = '', own = '']) => {
      const path = own || (texts.at(-1)?.[2] ?? '')
      const whole = path.replace('...', '/v1/bots/:id')
      return { method, path: whole.replace(/:\w+/g, String(botId)) }
    })
  })
}

/** The update that the page shows. */
const shownUpdate = {
  message: { message_id: 1, date: 1_795_259_700, chat: { id: 42, type: 'private' }, text: 'hello' },
}

/** Sets up what a section assumes. */
async function setScene(t: TestContext, server: Server, section: string): Promise<void> {
  await server.admin('DELETE', `/v1/bots/${botId}`)
  // This section registers the bot.
  if (section === 'Bots') return
  const { token } = await server.register(botId)
  if (section === 'All bots') await server.push(botId, shownUpdate)
  if (section === 'Why nothing arrives') {
    await setWebhook(t, { server, token }, (_delivery, response) => response.writeHead(503).end())
    for (let key = 0; key < 3; key++) {
      await server.push(botId, shownUpdate, `ordering_key=${key}`)
    }
    await until(async () => (await stateOf(server)).health === 'failing')
  }
  if (section === 'Dead letters') {
    await setWebhook(t, { server, token }, (_delivery, response) =>
      response.writeHead(400, { 'Webhook-Delivery': 'abort-message' }).end(),
    )
  }
}

async function setWebhook(
  t: TestContext,
  { server, token }: { readonly server: Server; readonly token: string },
  receive: Receiver,
): Promise<void> {
  const sink = await startSink(t, receive)
  const { text, status } = await server.call(token, 'setWebhook', { url: sink.url('/') })
  assert.equal(status, 200, text)
}

async function tryOut(server: Server, home: string, example: Example): Promise<void> {
  const { section, answer } = example
  let { command } = example
  const [, file] = /^cat (\S+)$/.exec(command) ?? []
  if (file !== undefined) {
    writeFileSync(join(home, file), answer)
    return
  }
  if (section === 'Dead letters') {
    command = command.replace(letterId, await someLetter(server))
  }
  const [, variables = ''] = /^```sh\n([\s\S]*?)^```$/m.exec(page) ?? []
  const script = `${variables.replace('http://127.0.0.1:8082', server.privateUrl)}\n${command}`
  const { stdout } = await run('bash', ['-ec', script], {
    cwd: home,
    env: { ...process.env, CURL_HOME: home },
  })
  assertSameForm(stdout, answer)
}

/** Returns the id of a dead letter. It makes a new one if none is left. */
async function someLetter(server: Server): Promise<string> {
  const deadLetters = async (): Promise<readonly { readonly update_id: number }[]> =>
    (await server.admin('GET', `/v1/bots/${botId}/dead-letters`)).body.dead_letters
  // An update that was replayed becomes a dead letter again.
  const { pending } = await stateOf(server)
  if ((await deadLetters()).length === 0 && pending === 0) {
    await server.push(botId, shownUpdate)
  }
  await until(async () => (await deadLetters()).length > 0)
  return String((await deadLetters())[0]?.update_id)
}

async function stateOf(server: Server): Promise<{ readonly health: string; pending: number }> {
  return (await server.admin('GET', `/v1/bots/${botId}`)).body
}

function assertSameForm(actual: string, shown: string): void {
  const [given, expected] = [documentsOf(actual), documentsOf(shown)]
  assert.equal(given.length, expected.length, actual)
  expected.forEach((each, index) => assertForm(given[index], each, `in ${actual}`))
}

/** Parses the text as one document, or as one document per line. */
function documentsOf(text: string): unknown[] {
  const json = text.replace(/(?<=[{,])\.\.\.(?=[,}])/g, '"...":0')
  try {
    return [JSON.parse(json)]
  } catch {
    return json
      .trim()
      .split('\n')
      .map((line): unknown => JSON.parse(line))
  }
}

function assertForm(actual: unknown, shown: unknown, where: string): void {
  if (Array.isArray(shown)) {
    assert(Array.isArray(actual), where)
    assert.equal(actual.length > 0, shown.length > 0, where)
    actual.forEach((each, index) => assertForm(each, shown[index] ?? shown.at(-1), where))
  } else if (isRecord(shown)) {
    assert(isRecord(actual), where)
    const named = Object.keys(shown).filter((key) => key !== '...')
    const given = Object.keys(actual).filter((key) => !('...' in shown) || named.includes(key))
    assert.deepEqual(given, named, where)
    for (const key of named) {
      if (key === 'error' && isRecord(shown[key])) assert.deepEqual(actual[key], shown[key])
      else assertForm(actual[key], shown[key], `${key} ${where}`)
    }
  } else if (typeof shown === 'boolean') assert.equal(actual, shown, where)
  else if (shown === null || actual === null) assert(!isRecord(actual), where)
  else assert.equal(typeof actual, typeof shown, where)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
