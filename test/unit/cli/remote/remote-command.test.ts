import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type } from 'typebox'
import { querySchema } from '../../../../src/api/operation.ts'
import { shownAsOf } from '../../../../src/api/words.ts'
import { parseCommand } from '../../../../src/cli/commands/parse-command.ts'
import { commandTable } from '../../../../src/modules/command-table.ts'
import type { OptionRow } from '../../../../src/config/config-options.ts'
import { fieldOption, orNone, remoteCommand } from '../../../../src/cli/remote/remote-command.ts'
import { oneOf, refused } from '../../../../src/config/config-values.ts'
import { apiOperations } from '../../../../src/modules/api-operations.ts'
import { keyOperations } from '../../../../src/features/keys/key-operations.ts'
import { webhookOperations } from '../../../../src/features/bots/webhook-operations.ts'

test('every command that a call names is in the table', () => {
  const names = new Set(commandTable.map(({ name }) => name))
  const named = apiOperations.flatMap(({ command }) => command ?? [])
  assert(named.length > 20)
  assert.deepEqual(
    named.filter((name) => !names.has(name)),
    [],
  )
})

test('a command has the name, the arguments and the chosen fields of its call, and --test for a queue', () => {
  const {
    name,
    arguments: values,
    options,
  } = remoteCommand(webhookOperations.retryBot, {
    sentence: 'tries again',
    fields: { ordering_key: { defaultShown: 'all' } },
    lines: () => [],
  })
  assert.equal(name, 'retry')
  assert.deepEqual(
    values.map((each) => each.name),
    ['<bot_id>'],
  )
  assert.deepEqual(
    options.slice(0, 3).map((each) => each.name),
    ['ordering-key', 'test', 'url'],
  )
  const [key] = options
  assert.match(key?.sentence ?? '', /^The key that is tried/)
  assert.equal(key?.defaultShown, 'all')
})

test('an option has the values of the schema of its field, and is required as the field is', () => {
  const scopes = option('scopes')
  assert.equal(scopes.defaultShown, 'none; required')
  assert.deepEqual(scopes.kind.parse('push,read'), ['push', 'read'])
  assert.equal(scopes.kind.parse('pull'), refused)
  const bots = option('bots')
  assert.equal(bots.defaultShown, undefined)
  assert.deepEqual([bots.kind.parse('4711'), bots.kind.parse('1')], [[4711], refused])
  const limit: OptionRow['kind'] = fieldOption(
    webhookOperations.setLimits,
    'deliveries_per_second',
    {},
  ).kind
  assert.deepEqual(
    ['0.5', 'none', '0'].map((text) => limit.parse(text)),
    [0.5, null, refused],
  )
  assert.equal(limit.expected, 'a number from 0.1 to 10000, or none')
})

test('none is one of the words, if there are words', () => {
  const kind = orNone(oneOf(['telegram']), undefined)
  assert.equal(kind.expected, 'one of telegram, none')
  assert.deepEqual(
    ['telegram', 'none', 'x'].map((text) => kind.parse(text)),
    ['telegram', undefined, refused],
  )
})

function option(field: string): OptionRow {
  return fieldOption<never>(keyOperations.createKey, field, {})
}

test('each field that is a time or a duration is an option that takes one as people write it', () => {
  const found: string[] = []
  for (const operation of apiOperations) {
    const row = commandTable.find(({ name }) => name === operation.command)
    const body = operation.body?.()
    const properties = {
      ...querySchema(operation)?.properties,
      ...(Type.IsObject(body) ? body.properties : {}),
    }
    for (const [field, schema] of Object.entries(properties)) {
      const as = shownAsOf(schema)
      const taken = row?.options.find(({ name }) => name === field.replaceAll('_', '-'))
      if (taken === undefined || (as !== 'time' && as !== 'duration')) continue
      found.push(`${operation.command} --${taken.name}`)
      assert.notEqual(taken.kind.parse('10m'), refused, found.at(-1))
      assert.equal(taken.kind.parse('1700000000000'), refused, found.at(-1))
      assert.doesNotMatch(taken.sentence, /seconds/i)
    }
  }
  for (const each of ['audit --since', 'audit --until', 'updates list --since', 'push --ttl']) {
    assert(found.includes(each), each)
  }
})

test('times in the wrong order are refused before anything is asked', async () => {
  const audit = commandTable.find(({ name }) => name === 'audit')
  assert(audit?.kind === 'parsed')
  const call = parseCommand(audit, ['--since', '1h', '--until', '2h'], () => assert.fail())
  await assert.rejects(
    audit.run(call),
    /^ConfigError: --since: expected a time before that of --until/,
  )
})
