import assert from 'node:assert/strict'
import { test } from 'node:test'
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
