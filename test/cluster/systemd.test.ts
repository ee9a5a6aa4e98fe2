/** What a service manager hears from a server, and the unit of examples/systemd. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startMsMax, stopMsMax } from '../../scripts/service-limits.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { parseConfig } from '../../src/config/config.ts'
import { drainMs } from '../../src/kit/limits.ts'
import { NotifySocket } from '../support/kit/notify-socket.ts'
import { root } from '../support/server/package-user.ts'
import { startSingleServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'

const unitFile = join(root, 'examples/systemd/postbote.service')

test('a service manager hears of the start, of reloads, of life and of the end', async (t) => {
  const address = join(temporaryDirectory(t), 'notify')
  const socket = await NotifySocket.start(t, address)
  const server = await startSingleServer(t, {
    env: { NOTIFY_SOCKET: address, WATCHDOG_USEC: '400000' },
  })
  const ready = `READY=1\nSTATUS=Serving bots at ${server.botUrl.slice(7)} and producers at ${server.privateUrl.slice(7)}, workers: 1`
  await until(() => socket.states.length === 2)
  assert.deepEqual(socket.states, ['STATUS=Starting', ready])

  await until(() => socket.notices.filter((notice) => notice === 'WATCHDOG=1').length >= 3)
  for (const pid of server.workerPids()) {
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8')
    assert.doesNotMatch(environment, /NOTIFY_SOCKET|WATCHDOG/)
  }

  const beforeUs = systemClock.machineMs() * 1_000
  process.kill(server.primaryPid, 'SIGHUP')
  await until(() => socket.states.length === 4, 60_000)
  const [, , reloading = '', readyAgain] = socket.states
  const atUs = Number(/^RELOADING=1\nMONOTONIC_USEC=(\d+)\n/.exec(reloading)?.[1])
  assert(atUs >= Math.floor(beforeUs) && atUs <= systemClock.machineMs() * 1_000)
  assert.equal(readyAgain, ready)

  assert.equal(await server.stop('SIGTERM'), 0)
  await until(() => socket.states.length === 5)
  assert.equal(socket.states[4], 'STOPPING=1\nSTATUS=Responding to open requests')
})

test('a server whose service manager does not listen serves as usual', async (t) => {
  const address = join(temporaryDirectory(t), 'notify')
  const server = await startSingleServer(t, { workers: 1, env: { NOTIFY_SOCKET: address } })
  assert.match(
    server.output(),
    /No such file or directory".*the service manager cannot be notified/,
  )
  assert.equal((await fetch(`${server.privateUrl}/readyz`)).status, 200)
  assert.equal(await server.stop(), 0)
})

test('the unit runs the server, and allows it the times that it may take', () => {
  const unit = readUnit()
  const [node, main, command, ...argv] = (unit.get('ExecStart') ?? '').split(' ')
  assert.deepEqual(
    [node, main, command],
    ['/usr/bin/node', '/opt/postbote/dist/src/main.js', 'serve'],
  )
  const { dir } = parseConfig({ argv, env: {}, readFile: () => '' })
  assert.equal(dir, `%S/${unit.get('StateDirectory')}`)
  assert.equal(unit.get('ExecReload'), `${node} ${main} reload --dir ${dir}`)
  assert.equal(unit.get('TimeoutStartSec'), String(startMsMax / 1_000))
  assert.equal(unit.get('TimeoutStopSec'), String(stopMsMax / 1_000))
  assert(stopMsMax > 2 * drainMs)
  assert.deepEqual(
    ['Type', 'KillMode', 'MemoryDenyWriteExecute', 'ProtectSystem', 'NoNewPrivileges'].map((key) =>
      unit.get(key),
    ),
    ['notify', 'mixed', 'no', 'strict', 'yes'],
  )
})

const analyze = spawnSync('systemd-analyze', ['--version'])
const obstacle = analyze.status === 0 ? false : 'systemd-analyze is not installed'

test('systemd finds nothing wrong with the unit', { skip: obstacle }, (t) => {
  const file = join(temporaryDirectory(t), 'postbote.service')
  // systemd looks for the programs.
  writeFileSync(file, readFileSync(unitFile, 'utf8').replaceAll('/usr/bin/node', process.execPath))
  const { status, stderr, stdout } = spawnSync('systemd-analyze', ['verify', file], {
    encoding: 'utf8',
  })
  assert.deepEqual({ status, output: stdout + stderr }, { status: 0, output: '' })
})

/** The settings of the unit. */
function readUnit(): ReadonlyMap<string, string> {
  const lines = [...readFileSync(unitFile, 'utf8').matchAll(/^(\w+)=(.*)$/gm)]
  const unit = new Map(lines.map(([, key = '', value = '']) => [key, value]))
  return unit
}
