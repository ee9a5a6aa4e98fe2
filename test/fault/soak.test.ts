/**
 * Runs the soak harness for some 40 seconds. A failure prints the command that repeats the run for any duration.
 * test/soak/README.md describes what is done and checked.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultKinds } from '../soak/fault-plan.ts'
import { runSoak } from '../soak/soak-run.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'

const { SEED = '11' } = process.env

test('12 kills and 6 power losses, among other faults, lose, double, misplace and reorder nothing', async (t) => {
  const seed = Number(SEED)
  const { violations, tallies, faults, durationMs } = await runSoak({
    seed,
    faults: faultKinds,
    minutes: 4,
    kills: 12,
    powerLosses: 6,
    diskKinds: ['ext4', 'posix'],
    paceMs: 800,
    rate: 60,
    place: temporaryDirectory(t),
    log: (line) => t.diagnostic(line),
  })
  const accounted = tallies.get('acknowledged, accounted for') ?? 0
  t.diagnostic(`${faults} faults and ${accounted} updates in ${Math.round(durationMs / 1_000)} s`)
  const command = `npm run soak -- --seed ${seed} --kills 12 --power-losses 6 --pace 800`
  assert.deepEqual(violations, [], `replay: ${command}`)
  assert(faults >= 18 && accounted > 100, `${faults} faults, ${accounted} updates`)
})
