/** A LevelDB that is none of Postbote's is read as well: what its records mean is the caller's. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ClassicLevel } from 'classic-level'
import { systemClock } from '../../../src/kit/clock.ts'
import { fileParts, readUnlessGone } from '../../../src/leveldb-files/file-parts.ts'
import type { FilesPart, Reading } from '../../../src/leveldb-files/files-part.ts'
import { listLevelFiles } from '../../../src/leveldb-files/level-manifest.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

/** Everything is sound, and nothing proves itself. */
const reading: Reading = {
  clock: systemClock,
  records: { recordFault: () => undefined, isKeyCovered: () => false, mayBeKey: () => true },
}

/** Fills a database, and opens it again, so that its first records are in a table and its last one in a log. */
async function files(t: TestContext): Promise<{ readonly table: string; readonly log: string }> {
  const directory = join(temporaryDirectory(t), 'db')
  for (const names of [['a', 'b', 'c'], ['d']]) {
    const level = new ClassicLevel(directory)
    await level.open()
    for (const name of names) await level.put(name, `value of ${name}`)
    await level.close()
  }
  const named = await listLevelFiles(directory)
  const pathOf = (wanted: string): string =>
    join(directory, named.find(({ kind }) => kind === wanted)?.name ?? '')
  return { table: pathOf('table'), log: pathOf('log') }
}

async function partsOf(path: string): Promise<FilesPart[]> {
  const file = await readUnlessGone(path, reading)
  assert(file !== undefined)
  const found = path.endsWith('.log')
    ? fileParts({ path, file, isLast: true, closedBytes: undefined }, reading)
    : fileParts({ path, file, listed: undefined }, reading)
  const parts: FilesPart[] = []
  for await (const part of found) parts.push(part)
  return parts
}

function entriesOf(parts: readonly FilesPart[]): readonly string[] {
  return parts.flatMap((part) =>
    part.kind === 'entries'
      ? part.entries.map(({ key, value }) => `${String(key)}=${String(value)}`)
      : [],
  )
}

test('a table and a log yield the records of any LevelDB, and no damage', async (t) => {
  const { table, log } = await files(t)
  const all = [...(await partsOf(table)), ...(await partsOf(log))]
  assert.deepEqual(entriesOf(all), ['a=value of a', 'b=value of b', 'c=value of c', 'd=value of d'])
  assert.deepEqual(
    all.filter(({ kind }) => kind === 'damage'),
    [],
  )
})

test('a table with a flipped bit yields its records, and says where the bit was', async (t) => {
  const { table } = await files(t)
  const bytes = readFileSync(table)
  bytes.writeUInt8(bytes.readUInt8(10) ^ 4, 10)
  writeFileSync(table, bytes)
  const parts = await partsOf(table)
  assert.deepEqual(entriesOf(parts), ['a=value of a', 'b=value of b', 'c=value of c'])
  const [damage] = parts
  assert(damage?.kind === 'damage')
  assert.equal(damage.mayLose, false)
})

test('a file that is gone is undefined, and a reading that was ended is, too', async (t) => {
  const { log } = await files(t)
  assert.equal(await readUnlessGone(`${log}x`, reading), undefined)
  assert.equal(await readUnlessGone(log, { ...reading, signal: AbortSignal.abort() }), undefined)
})
