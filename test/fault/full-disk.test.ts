import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const filler = fileURLToPath(new URL('../support/kit/full-disk.js', import.meta.url))

/** Runs a command with a file system of 16 MiB at `mount`, which disappears when the command ends. */
function withSmallDisk(
  mount: string,
  command: readonly string[],
): { status: number | null; stdout: string; stderr: string } {
  const script = 'mount -t tmpfs -o size=16m postbote-test "$0" && exec "$@"'
  return spawnSync('unshare', ['-rm', 'sh', '-c', script, mount, ...command], {
    encoding: 'utf8',
    timeout: 60_000,
  })
}

test('a full disk fails the write, and after room is made all acknowledged writes are there', (t) => {
  const mount = mkdtempSync(join(tmpdir(), 'pb-full-'))
  try {
    if (withSmallDisk(mount, ['true']).status !== 0) {
      t.skip('needs unshare -rm and the right to mount a tmpfs in it')
      return
    }
    const run = withSmallDisk(mount, [process.execPath, filler, mount])
    assert.equal(run.status, 0, run.stderr)
    const report: Record<string, unknown> = JSON.parse(run.stdout)
    assert.match(String(report['failure']), /No space left on device/)
    const acknowledged = Number(report['acknowledged'])
    assert.ok(acknowledged > 500, run.stdout)
    assert.deepEqual(
      { ...report, failure: '' },
      {
        wasLowAtFirst: false,
        failure: '',
        acknowledged,
        readableWhilePoisoned: acknowledged,
        probeWhileFull: false,
        isLowWhileFull: true,
        probeAfterwards: true,
        damages: 0,
        isEveryAcknowledgedThere: true,
        foundAfterwards: acknowledged + 1,
      },
    )
  } finally {
    rmSync(mount, { recursive: true })
  }
})
