import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { parseCommand } from '../../../../src/cli/commands/parse-command.ts'
import { configOf } from '../../../../src/cli/commands/run-command.ts'
import {
  botKind,
  botsKind,
  idOf,
  keyKind,
  keyOrAdminKind,
} from '../../../../src/cli/remote/id-of.ts'
import type { Kind } from '../../../../src/config/config-values.ts'
import { commandTable } from '../../../../src/modules/command-table.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

const bots = [
  { bot_id: 101, username: 'shop_bot' },
  { bot_id: 102, username: 'shop_bot_2' },
  { bot_id: 103, username: 'twin_bot' },
  { bot_id: 104, username: 'twin_bot' },
]
const keys = [
  { key_id: '6ee03515c86a5bd8', name: 'ci' },
  { key_id: '1111111111111111', name: 'twin' },
  { key_id: '2222222222222222', name: 'twin' },
]

test('a bot may be named by its username, if one bot has it', async (t) => {
  const find = await finder(t)
  assert.equal(await find(botKind, '@shop_bot'), 101)
  assert.equal(await find(botKind, '@Shop_Bot'), 101)
  assert.equal(await find(botKind, '4711'), 4_711)
  await assert.rejects(find(botKind, '@shop'), { message: 'no bot has the username @shop' })
  await assert.rejects(find(botKind, '@twin_bot'), {
    message: 'more than one bot has the username @twin_bot: give one of the ids 103, 104',
  })
})

test('a username is not looked for among more bots than a list has', async (t) => {
  const many = Array.from({ length: 1_000 }, (_, nth) => ({ bot_id: nth, username: `shop${nth}` }))
  const find = await finder(t, many)
  await assert.rejects(find(botKind, '@shop'), {
    message: '@shop: too many usernames begin with this; give the id',
  })
})

test('a key may be named by its name, if one key has it', async (t) => {
  const find = await finder(t)
  assert.equal(await find(keyKind, 'ci'), '6ee03515c86a5bd8')
  // A key that was revoked has no name that can be looked for.
  assert.equal(await find(keyKind, '3333333333333333'), '3333333333333333')
  await assert.rejects(find(keyKind, 'cd'), { message: 'no key has the id or the name "cd"' })
  await assert.rejects(find(keyKind, 'twin'), /more than one key .* 1111111111111111, 2{16}$/)
})

test('a key is made for bots by their usernames, each once, and calls are found by the name of a key', async (t) => {
  const find = await finder(t)
  assert.deepEqual(await find(botsKind, '@shop_bot,102,101'), [101, 102])
  await assert.rejects(find(botsKind, '102,@nobody'), /no bot has the username @nobody/)
  assert.equal(await find(keyOrAdminKind, 'ci'), '6ee03515c86a5bd8')
  assert.equal(await find(keyOrAdminKind, 'admin'), 'admin')
  for (const [command, option, kind] of [
    ['keys create', 'bots', botsKind],
    ['audit', 'key', keyOrAdminKind],
  ] as const) {
    const row = commandTable.find(({ name }) => name === command)
    assert(row?.kind === 'parsed')
    assert.equal(row.options.find(({ name }) => name === option)?.kind, kind, command)
  }
})

test('every command about a bot takes its username, and says so of a name without @', () => {
  const rows = commandTable.flatMap((row) =>
    row.kind === 'parsed' && row.arguments[0]?.name === '<bot_id>' ? [row] : [],
  )
  assert(rows.length > 20)
  for (const row of rows) {
    const others = row.arguments.slice(1).filter(({ name }) => name.startsWith('<'))
    const argv = (bot: string): string[] => [bot, ...others.map(() => '1')]
    parseCommand(row, argv('@shop_bot'), configOf)
    assert.throws(() => parseCommand(row, argv('shop_bot'), configOf), /did you mean @shop_bot\?/)
  }
})

/** Returns what finds ids on a server with the bots and keys above. */
async function finder(
  t: TestContext,
  listed: typeof bots = bots,
): Promise<(kind: Kind<unknown>, text: string) => Promise<unknown>> {
  const server = createServer((request, response) => {
    // A search also finds words of names and of hosts, so that a page of it may lack a bot.
    const isBots = request.url?.startsWith('/v1/bots?prefix=') === true
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify(isBots ? { bots: listed } : { keys }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const keyFile = join(temporaryDirectory(t), 'key')
  writeFileSync(keyFile, `${'k'.repeat(32)}\n`)
  const row = commandTable.find(({ name }) => name === 'summary')
  assert(row?.kind === 'parsed')
  const argv = ['--url', `http://127.0.0.1:${port}`, '--key-file', keyFile, '--timeout', '30s']
  const call = parseCommand(row, argv, configOf)
  return (kind, text) => idOf(call, kind, kind.parse(text))
}
