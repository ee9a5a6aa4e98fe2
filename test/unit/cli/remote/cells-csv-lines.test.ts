import assert from 'node:assert/strict'
import { test } from 'node:test'
import { csvLines } from '../../../../src/cli/remote/cells.ts'

test('a cell is quoted as RFC 4180 says, and nothing stands for what is not there', () => {
  assert.deepEqual(
    csvLines(
      ['a', 'b', 'c'],
      [
        ['x,"y"', null, true],
        [7, undefined, ''],
      ],
    ),
    ['a,b,c', '"x,""y""",,true', '7,,'],
  )
})

test('a text that a spreadsheet would run gets an apostrophe, and a number does not', () => {
  const texts = ['=1+1', '+1', '-1', '@SUM(A1)', '=a,"b"', 'a=b']
  assert.deepEqual(
    csvLines(
      ['v', 'n'],
      texts.map((text) => [text, -1]),
    ).slice(1),
    ["'=1+1,-1", "'+1,-1", "'-1,-1", "'@SUM(A1),-1", `"'=a,""b""",-1`, 'a=b,-1'],
  )
})

test('a line has no control characters, so each row is one line', () => {
  assert.deepEqual(csvLines(['v'], [['a\r\nb\u001b[2J']]), ['v', 'a??b?[2J'])
})
