import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandTable } from '../../../../src/cli/commands/command-table.ts'
import { completionModel, optionsByValue } from '../../../../src/cli/completion/completion-model.ts'

const model = completionModel(commandTable)

test('an option has the same kind of value in all commands, because scripts look only at its name', () => {
  const valued = [...optionsByValue(model).values()].flatMap(({ words }) => words)
  assert.equal(new Set(valued).size, valued.length)
  const switches = model.states.flatMap(({ options }) =>
    options.filter(({ value }) => value === 'none').map(({ word }) => word),
  )
  assert.deepEqual(
    switches.filter((word) => valued.includes(word)),
    [],
  )
})

test('words need no quotes in a shell', () => {
  for (const { words, commands, options } of model.states) {
    assert.match(words, /^[a-z -]*$/)
    for (const { word } of [...commands, ...options]) assert.match(word, /^[a-z-]+$/)
  }
})
