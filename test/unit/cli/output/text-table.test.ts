import assert from 'node:assert/strict'
import { test } from 'node:test'
import { textTable } from '../../../../src/cli/output/text-table.ts'
import { visibleJson } from '../../../../src/kit/text/visible.ts'

const head = ['id', 'name', 'error']

test('columns are as wide as their widest cell, and lines end without spaces', () => {
  const rows = [
    ['1', 'first_bot', ''],
    ['22', 'b', 'Connection refused'],
  ]
  assert.deepEqual(textTable({ head, rows }), [
    'id  name       error',
    '1   first_bot',
    '22  b          Connection refused',
  ])
})

test('on a terminal the widest columns are cut until the table fits, and narrow ones stay', () => {
  const rows = [['4711', 'a_rather_long_name', 'an error that is longer than all other cells']]
  for (const width of [80, 60, 50, 40, 30]) {
    const lines = textTable({ head, rows }, width)
    for (const line of lines) assert.ok(line.length <= width, `${line.length} of ${width}`)
    assert.match(lines[1] ?? '', /^4711 {2}a_/)
  }
  assert.deepEqual(textTable({ head, rows }, 40)[1], '4711  a_rather_long_n…  an error that i…')
})

test('a table that cannot fit keeps a few characters of each column', () => {
  const rows = [['0123456789', '0123456789', '0123456789']]
  assert.equal(textTable({ head, rows }, 10)[1], '01234…  01234…  01234…')
})

test('control characters and marks that turn the direction of text never reach the terminal', () => {
  const rows = [['\u001b[2J', 'a\nb', '\u202egnp.exe\u009b1A']]
  assert.deepEqual(textTable({ head, rows })[1], '?[2J  a?b   ?gnp.exe?1A')
  const json = JSON.stringify(rows)
  assert.equal(visibleJson(json), String.raw`[["\u001b[2J","a\nb","\u202egnp.exe\u009b1A"]]`)
  assert.deepEqual(JSON.parse(visibleJson(json)), rows)
})

test('a character outside the basic plane counts as one', () => {
  const rows = [['1', '😀😀', 'x']]
  assert.equal(textTable({ head, rows })[1], '1   😀😀    x')
})
