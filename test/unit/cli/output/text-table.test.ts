import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nameLines, textTable } from '../../../../src/cli/output/text-table.ts'
import { widthOf } from '../../../../src/cli/output/width-of.ts'
import { visibleJson } from '../../../../src/kit/text/visible.ts'

const head = ['id', 'name', 'time', 'error', 'bytes']
const kinds = ['number', 'name', 'whole', 'reason', 'number'] as const
const time = '2026-11-23T08:15:00Z'
const long = 'connect ECONNREFUSED 127.0.0.1:9 after some words that take more than one line'
const rows = [
  ['4711', 'a_rather_long_name_of_a_bot', time, long, '12'],
  ['7', 'b', time, 'short', '3000'],
  ['8', 'c', time, '-', '1'],
]

test('columns are as wide as their widest cell, numbers are right, and lines end without spaces', () => {
  const few = [
    ['1', 'first_bot', ''],
    ['22', 'b', 'Connection refused'],
  ]
  const table = { head: ['id', 'name', 'error'], kinds: ['number'] as const, rows: few }
  assert.deepEqual(textTable(table).lines, [
    'id  name       error',
    ' 1  first_bot',
    '22  b          Connection refused',
  ])
})

test('a table that fits is not changed, and one for no terminal is whole', () => {
  const { lines, left } = textTable({ head, kinds, rows })
  assert.deepEqual(left, [])
  assert.equal(lines[1], `4711  a_rather_long_name_of_a_bot  ${time}  ${long}     12`)
  assert.deepEqual(textTable({ head, kinds, rows }, widthOf(lines[1] ?? '')).lines, lines)
})

test('at each width the last columns go first, names are cut, and ids, times and errors are whole', () => {
  for (let width = 6; width <= 160; width++) {
    const { lines, left } = textTable({ head, kinds, rows }, width)
    for (const line of lines) assert(widthOf(line) <= width, `${width}: ${line}`)
    assert.match(lines[1] ?? '', /^4711/)
    const text = lines.join('\n')
    assert.equal(text.includes(time), !left.includes(2), `${width}`)
    const words = lines.join(' ').split(/ +/)
    if (width >= 40) for (const word of long.split(' ')) assert(words.includes(word), `${width}`)
    assert.deepEqual(left, [1, 2, 4].slice(3 - left.length), `${width}`)
  }
})

test('a reason that does not fit stands below its row, and shorter ones beside theirs', () => {
  assert.deepEqual(textTable({ head, kinds, rows }, 88).lines, [
    '  id  name                         time                  bytes  error',
    '4711  a_rather_long_name_of_a_bot  2026-11-23T08:15:00Z     12',
    `    ${long}`,
    '   7  b                            2026-11-23T08:15:00Z   3000  short',
    '   8  c                            2026-11-23T08:15:00Z      1  -',
  ])
  const narrow = textTable({ head, kinds, rows }, 60).lines
  assert.deepEqual(narrow.slice(0, 4), [
    '  id  name                       time                  bytes',
    '4711  a_rather_long_name_of_a_…  2026-11-23T08:15:00Z     12',
    '    connect ECONNREFUSED 127.0.0.1:9 after some words that',
    '    take more than one line',
  ])
})

test('a reason that fits whole in its place stays there, and less important columns give way', () => {
  const table = { head: ['id', 'error', 'bytes'], kinds: ['number', 'reason', 'number'] as const }
  const few = [
    ['1', 'Connection refused', '12'],
    ['2', '-', '3'],
  ]
  assert.deepEqual(textTable({ ...table, rows: few }, 24), {
    lines: ['id  error', ' 1  Connection refused', ' 2  -'],
    left: [2],
  })
})

test('columns that were asked for are never left out', () => {
  const { lines, left } = textTable({ head, kinds, rows, isWhole: true }, 30)
  assert.deepEqual(left, [])
  assert.equal(lines[2], '    connect ECONNREFUSED')
})

test('control characters and marks that turn the direction of text never reach the terminal', () => {
  const bad = [['\u001b[2J', 'a\nb', '\u202egnp.exe\u009b1A']]
  const table = { head: ['id', 'name', 'error'], rows: bad }
  assert.deepEqual(textTable(table).lines[1], '?[2J  a?b   ?gnp.exe?1A')
  assert.deepEqual(nameLines([['a\nb', '\u001b[2J']]), ['a?b  ?[2J'])
  const json = JSON.stringify(bad)
  assert.equal(visibleJson(json), String.raw`[["\u001b[2J","a\nb","\u202egnp.exe\u009b1A"]]`)
  assert.deepEqual(JSON.parse(visibleJson(json)), bad)
})

test('a wide character counts as two, and a mark on a letter as none', () => {
  assert.deepEqual(['a', '😀', '日本', 'e\u0301'].map(widthOf), [1, 2, 4, 1])
  const table = { head: ['id', 'name', 'x'], kinds: ['whole', 'name'] as const }
  const names = [['1', '日本語の名前です長い名前', 'x']]
  assert.deepEqual(textTable({ ...table, rows: [['1', '😀日', 'x']] }).lines[1], '1   😀日  x')
  assert.deepEqual(textTable({ ...table, rows: names }, 27).lines[1], '1   日本語の名前です長…   x')
})

test('a value goes on in its column, and a word longer than the line loses nothing', () => {
  const pairs = [
    ['mode', 'webhook'],
    ['reason', 'the endpoint refuses all of the connections'],
    ['url', 'x'.repeat(40)],
  ] as const
  assert.deepEqual(nameLines(pairs, 34), [
    'mode    webhook',
    'reason  the endpoint refuses all',
    '        of the connections',
    `url     ${'x'.repeat(26)}`,
    `        ${'x'.repeat(14)}`,
  ])
  assert.deepEqual(nameLines(pairs.slice(0, 1), 20), ['mode', '  webhook'])
  for (let width = 3; width < 60; width++) {
    for (const line of nameLines(pairs, width).filter((each) => each.startsWith(' '))) {
      assert(widthOf(line) <= width, `${width}: ${line}`)
    }
  }
})
