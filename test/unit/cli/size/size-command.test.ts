import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { estimateSize } from '../../../../src/cli/size/estimate-size.ts'

const mainFile = fileURLToPath(new URL('../../../../src/main.js', import.meta.url))

function size(...args: string[]): { code: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [mainFile, 'size', ...args], {
    encoding: 'utf8',
  })
  return { code: status, out: stdout, err: stderr }
}

test('postbote size prints its estimate for people and for programs, and polls unless told otherwise', () => {
  const load = { bots: 300, updatesPerSecond: 700, backlog: 5_000, updateBytes: 300 }
  const args = ['--bots=300', '--rate=700', '--backlog=5000']
  const people = size(...args)
  const poll = estimateSize({ mode: 'poll', ...load })
  assert.equal(people.code, 0)
  assert(people.out.includes(`memory   ${Math.round(poll.memoryBytes / 1e6)} MB\n`), people.out)
  const hooked = estimateSize({ mode: 'webhook', ...load })
  assert.deepEqual(JSON.parse(size(...args, '--webhook', '--json').out), {
    cores: Number(hooked.cores.toFixed(2)),
    workers: hooked.workers,
    memory_bytes: Math.round(hooked.memoryBytes),
    disk_bytes: Math.round(hooked.diskBytes),
  })
})

test('postbote size says when a rate is beyond what was measured, and beyond one server', () => {
  const { out } = size('--bots=1', '--rate=1000000000')
  assert.match(out, /Above \d+ updates a second nothing was/)
  assert.match(out, /A server has at most 256 workers/)
  assert.doesNotMatch(size('--bots=1', '--rate=1').out, /nothing was|at most/)
})

test('larger updates take more', () => {
  const args = ['--bots=9', '--rate=500', '--backlog=9000', '--json']
  const small = JSON.parse(size(...args).out)
  const large = JSON.parse(size(...args, '--update-bytes=100000').out)
  for (const amount of ['cores', 'memory_bytes', 'disk_bytes'])
    assert(large[amount] > small[amount])
})

test('postbote size refuses what it cannot estimate, by name', () => {
  for (const [args, problem] of [
    [['--rate=1'], /--bots: expected/],
    [['--bots=1'], /--rate: expected/],
    [['--bots=1.5', '--rate=1'], /--bots: expected a whole number from 1/],
    [['--bots', '--rate=1'], /--bots: expected/],
    [['--bots=1', '--rate=1e3'], /--rate: expected a whole number/],
    [['--bots=1', '--rate=9999999999999999999'], /--rate: expected a whole number/],
    [['--bots=1', '--rate=1', '--update-bytes=299'], /--update-bytes: expected/],
    [['--bots=1', '--rate=1', '5'], /argument/],
    [['--bots=0', '--rate=1'], /--bots: expected a whole number from 1/],
    [['--bots=1', '--rate=1', '--backlog=-1'], /--backlog: expected/],
    [['--bots=1', '--rate=1', '--poll', '--webhook'], /--poll and --webhook: expected one of them/],
  ] as const) {
    const { code, err } = size(...args)
    assert.equal(code, 2, err)
    assert.match(err, problem)
  }
})
