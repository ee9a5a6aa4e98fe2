import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Cell, withColumn } from '../../../scripts/clients-table.ts'

const empty = `# Page

<!-- The table is written by \`npm run docs\`, after a run of the tests. -->

<!-- End of the table. -->

More.
`
const quick: Cell = cell('quick', '1.2')
const slow: Cell = cell('slow', '0.3')

test('a run fills its column, in its order, and leaves the rest of the page unchanged', () => {
  const page = withColumn(empty, 'restart', [quick, { ...slow, saw: 'waits' }])
  assert.deepEqual(rowsOf(page), [
    '| quick | 1.2 |  |  |  | works |  |',
    '| slow | 0.3 |  |  |  | waits |  |',
  ])
  assert(page.startsWith('# Page\n\n<!--') && page.endsWith('-->\n\nMore.\n'))
})

test('the columns of other runs stay, as do versions and cells of frameworks that are not installed now', () => {
  let page = withColumn(empty, 'polling', [quick, slow])
  const absent: Cell = { ...slow, version: undefined, result: 'skipped', saw: slow.missing }
  page = withColumn(page, 'polling', [{ ...quick, version: '1.3', saw: 'still' }, absent])
  page = withColumn(page, 'conflict', [quick, absent])
  assert.deepEqual(rowsOf(page), [
    '| quick | 1.2 | still |  |  |  | works |',
    '| slow | 0.3 | works |  |  |  | – |',
  ])
})

test('the table shows which frameworks are not installed, do not take part, or fail', () => {
  const absent: Cell = { ...slow, version: undefined, result: 'skipped', saw: '' }
  const page = withColumn(empty, 'webhook', [
    { ...quick, result: 'skipped', saw: 'has none' },
    absent,
    { ...cell('broken', '9'), result: 'failed', saw: '' },
  ])
  assert.deepEqual(rowsOf(page), [
    '| quick | 1.2 |  | – (has none) |  |  |  |',
    '| slow | – (not here) |  | – |  |  |  |',
    '| broken | 9 |  | **fails** |  |  |  |',
  ])
})

test('a framework that no longer runs is removed from the table, and one that comes back starts empty', () => {
  let page = withColumn(empty, 'polling', [quick, slow])
  page = withColumn(page, 'secret', [slow])
  page = withColumn(page, 'secret', [slow, quick])
  assert.deepEqual(rowsOf(page), [
    '| slow | 0.3 | works |  | works |  |  |',
    '| quick | 1.2 |  |  | works |  |  |',
  ])
})

test('a page without markers for the table is refused', () => {
  assert.throws(() => withColumn('# Page\n', 'polling', [quick]), /no markers for the table/)
})

function cell(framework: string, version: string): Cell {
  return { framework, version, missing: 'not here', result: 'passed', saw: 'works' }
}

function rowsOf(page: string): string[] {
  return page
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2)
}
