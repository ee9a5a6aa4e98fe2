/**
 * No damage of a shard's files is silent. Each seed damages one place of one file of a shard with 4,800 updates, and the shard is
 * opened, read, rewritten and read again: everything is there, or the damage was announced.
 *
 * `SEEDS=10000 node --test dist/test/fault/damaged-blocks.test.js` tries more of them, and `FIRST=123 SEEDS=1` only one.
 */
import assert from 'node:assert/strict'
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { PostboteError } from '../../src/kit/errors.ts'
import { damageOf } from '../../src/store/level/damage-of.ts'
import { drawnRuns } from '../support/kit/drawn-runs.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { Luck } from '../support/simulation/luck.ts'
import {
  compareLedger,
  type Ledger,
  makeLedger,
  openLedger,
} from '../support/store/update-ledger.ts'

const { SEEDS = drawnRuns(200), FIRST = '1' } = process.env

const kinds = {
  table: /^\d+\.ldb$/,
  log: /^\d+\.log$/,
  manifest: /^MANIFEST-\d+$/,
  current: /^CURRENT$/,
} as const

/** What became of a damaged copy. */
type Outcome = 'whole' | 'refused' | 'announced' | 'silent'

test('of 200 damaged copies of a shard, each is served whole, or says what is damaged', async (t) => {
  const [sound, crashed, copy] = ['sound', 'crashed', 'copy'].map((name) =>
    join(temporaryDirectory(t), name),
  ) as [string, string, string]
  const ledger = await makeLedger(sound, crashed)
  for (const from of [sound, crashed]) {
    rmSync(copy, { recursive: true, force: true })
    cpSync(from, copy, { recursive: true })
    assert.equal((await tried(copy, ledger)).outcome, 'whole')
  }
  const counts = { whole: 0, refused: 0, announced: 0, silent: 0 }
  const silent: string[] = []
  const first = Number(FIRST)
  for (let seed = first; seed < first + Number(SEEDS); seed++) {
    const luck = new Luck(seed)
    rmSync(copy, { recursive: true, force: true })
    const hasCrashed = luck.chance(0.25)
    cpSync(hasCrashed ? crashed : sound, copy, { recursive: true })
    const what = damage(join(copy, 'shards', '0'), luck, hasCrashed)
    const { outcome, detail } = await tried(copy, ledger)
    counts[outcome] += 1
    if (outcome === 'silent') silent.push(`FIRST=${seed} SEEDS=1: ${what}: ${detail}`)
  }
  t.diagnostic(JSON.stringify(counts))
  assert.deepEqual(silent, [])
})

/** Damages one place, and returns what was done. */
function damage(directory: string, luck: Luck, hasCrashed: boolean): string {
  const kind = luck.pick(['table', 'table', 'table', 'log', 'log', 'manifest', 'current'] as const)
  const files = readdirSync(directory).filter((name) => kinds[kind].test(name))
  const name = luck.pick(files.toSorted())
  const path = join(directory, name)
  const bytes = readFileSync(path)
  if (bytes.length === 0) return `${name} is empty`
  const at = luck.int(0, bytes.length - 1)
  // After a crash, an end that was cut off exactly after a group is not damage that anything could show.
  const how = luck.pick(
    hasCrashed && kind === 'log' ? ['flip', 'zeros'] : ['flip', 'flip', 'zeros', 'cut'],
  )
  if (how === 'flip') bytes[at] = (bytes[at] ?? 0) ^ (1 << luck.int(0, 7))
  if (how === 'zeros') bytes.fill(0, at, Math.min(at + 4_096, bytes.length))
  writeFileSync(path, how === 'cut' ? bytes.subarray(0, at) : bytes)
  return `${how} at ${at} of ${bytes.length} bytes of ${name}${hasCrashed ? ' after a crash' : ''}`
}

async function tried(
  dataDir: string,
  ledger: Ledger,
): Promise<{ readonly outcome: Outcome; readonly detail: string }> {
  let opened: Awaited<ReturnType<typeof openLedger>>
  try {
    opened = await openLedger(dataDir)
  } catch (error) {
    // Only damage sets a shard aside; anything else would keep the worker from starting.
    const found = damageOf(error, join(dataDir, 'shards', '0'))
    assert(found !== undefined, String(error))
    return { outcome: 'refused', detail: found.reason }
  }
  const { shard, said } = opened
  try {
    const before = await compareLedger(shard, ledger)
    await shard.freeRoom()
    const after = await compareLedger(shard, ledger)
    const detail = JSON.stringify({ before, after })
    if (after.missing === 0 && after.wrong === 0) return { outcome: 'whole', detail }
    return { outcome: said.length > 0 ? 'announced' : 'silent', detail }
  } catch (error) {
    // A poll gets 503, and the check that follows names the file.
    if (!(error instanceof PostboteError) || error.code !== 'STORE_UNAVAILABLE') throw error
    return { outcome: 'refused', detail: String(error) }
  } finally {
    await shard.close()
  }
}
