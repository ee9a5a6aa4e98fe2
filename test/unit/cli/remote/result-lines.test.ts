import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type } from 'typebox'
import * as is from '../../../../src/api/words.ts'
import { declareOperations } from '../../../../src/api/operation.ts'
import { fieldOf } from '../../../../src/cli/remote/cells.ts'
import { remoteCommand } from '../../../../src/cli/remote/remote-command.ts'
import { View } from '../../../../src/cli/output/view.ts'
import { listIn, resultLines } from '../../../../src/cli/remote/result-lines.ts'
import { apiOperations } from '../../../../src/modules/api-operations.ts'

const { toyList, toyDone } = declareOperations('bots', {
  toyList: {
    route: 'GET /v1/bots/:id/toys',
    scope: 'read',
    about: 'queue',
    command: 'toys list',
    columns: ['name', 'made'],
    none: 'no toys',
    summary: 'Returns the toys of a bot',
    query: () => ({
      color: is.text('Only toys of this color.'),
      limit: is.listLimit(9, 3),
    }),
    result: () =>
      is.object({
        toys: is.list(is.object({ name: is.text(), made: is.time('When it was made.') })),
        total: is.count('All toys.'),
      }),
  },
  toyDone: {
    route: 'DELETE /v1/bots/:id/toys',
    scope: 'manage',
    about: 'bot',
    command: 'toys remove',
    done: 'removed {removed} toys of bot {id}',
    summary: 'Removes the toys of a bot',
    result: () => is.removedCount(),
  },
})

test('a list is a table, and what else the result says follows', () => {
  const toys = [
    { name: 'ball', made: 0 },
    { name: 'top', made: 60 },
  ]
  assert.deepEqual(resultLines(toyList, { toys, total: 9 }, new View()), [
    'name  made',
    'ball  1970-01-01T00:00:00Z',
    'top   1970-01-01T00:01:00Z',
    'total  9',
  ])
})

test('an empty list is said, and so is what was done', () => {
  assert.deepEqual(resultLines(toyList, { toys: [] }, new View()), ['no toys'])
  assert.deepEqual(resultLines(toyDone, { removed: 2 }, new View(), { id: 123 }), [
    'removed 2 toys of bot 123',
  ])
})

test('a single object has a line for each field, but not for what is told beside it', () => {
  const { toyList: _list, ...row } = { toyList, ...toyList, columns: undefined }
  const { columns: _columns, ...single } = row
  assert.deepEqual(resultLines(single, { total: 1, later: 'x', missing_shards: [3] }, new View()), [
    'total  1',
    'later  x',
  ])
})

test('a command takes its help and its options from the row of its call', () => {
  const { name, sentence, arguments: positional, options } = remoteCommand(toyList)
  assert.deepEqual([name, sentence], ['toys list', 'shows the toys of a bot'])
  assert.deepEqual(
    [...positional, ...options.slice(0, 3)].map((each) => each.name),
    ['<bot_id>', 'color', 'limit', 'test'],
  )
  assert.deepEqual(
    options.slice(0, 2).map((each) => [each.defaultShown ?? each.default, each.sentence]),
    [
      ['none; required', 'Only toys of this color.'],
      ['3', ''],
    ],
  )
})

test('the columns of each call are fields of its list', () => {
  for (const { id, columns, result } of apiOperations) {
    if (columns === undefined) continue
    const list = listIn(result?.() ?? Type.Unknown())
    for (const column of columns) assert(list?.item.properties[column], `${id}: ${column}`)
  }
})

test('what each call says when it is done names parameters of its path and fields of its result', () => {
  for (const { id, done = '', path, result } of apiOperations) {
    for (const [, name = ''] of done.matchAll(/\{(\w+)\}/g)) {
      const isKnown = path.includes(`:${name}`) || !isUnknown(result?.(), name)
      assert(isKnown, `${id}: ${name}`)
    }
  }
})

function isUnknown(schema: Parameters<typeof fieldOf>[0] | undefined, name: string): boolean {
  return schema === undefined || Type.IsUnknown(fieldOf(schema, name))
}
