import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { lockDirectory } from '../../src/process/primary/directory-lock.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'

const mainFile = fileURLToPath(new URL('../../src/main.js', import.meta.url))
const script = fileURLToPath(new URL('../../scripts/service.js', import.meta.url))

test('the service script starts, reloads, restarts and stops a server, and reports its state', async (t) => {
  const service = serviceOf(t)
  assert.equal((await service('status')).code, 3)
  assert.equal((await service('stop')).code, 0)
  assert.equal((await service('reload')).code, 7)

  const started = await service('start', '--workers=1', ...freePorts)
  assert.equal(started.code, 0, started.output)
  assert.match(started.output, /^started: process \d+, bots at 0\.0\.0\.0:\d+, producers at 127/)
  const running = await service('status')
  assert.equal(running.code, 0)
  assert.match(running.output, /^running: process \d+, bots at .*, workers \d+\n$/)
  assert.equal(pidOf(running.output), pidOf(started.output))
  const [, admin] = /producers at (\S+?),/.exec(running.output) ?? []
  assert.equal((await fetch(`http://${admin}/readyz`)).status, 200)
  const twice = await service('start', '--workers=1')
  assert.deepEqual([twice.code, twice.output.slice(0, 15)], [0, 'already running'])

  assert.deepEqual(await service('reload'), { code: 0, output: 'reloaded\n' })
  const reloaded = await service('status')
  assert.equal(pidOf(reloaded.output), pidOf(running.output))
  assert.notEqual(reloaded.output, running.output)

  const restarted = await service('restart', '--workers=2', ...freePorts)
  assert.equal(restarted.code, 0, restarted.output)
  assert.match(restarted.output, /^stopped\nstarted: .* workers \d+ \d+\n$/)
  assert.match((await service('logs')).output, /"msg":"reloaded"[\s\S]*"msg":"ready"/)

  assert.deepEqual(await service('stop'), { code: 0, output: 'stopped\n' })
  assert.equal((await service('status')).code, 3)
})

test('a start that fails reports why and leaves nothing running', async (t) => {
  const service = serviceOf(t)
  const refused = await service('start', '--http-port=x')
  assert.equal(refused.code, 2)
  const failed = await service('start', '--workers=16', '--shards=8')
  assert.equal(failed.code, 2)
  const late = await service('start', '--http-ip-address=192.0.2.1', ...freePorts)
  assert.equal(late.code, 1)
  assert.match(late.output, /did not start; these are the last lines of .*\n[\s\S]*EADDRNOTAVAIL/)
  assert.equal((await service('status')).code, 3)
  assert.equal((await service('unknown')).code, 2)
})

test('the pid file of a killed server misleads no command, even if another process has its id', async (t) => {
  const service = serviceOf(t)
  const { output } = await service('start', '--workers=1', ...freePorts)
  const pid = pidOf(output)
  process.kill(pid, 'SIGKILL')
  await until(async () => (await service('status')).code !== 0)
  const file = join(service.directory, 'postbote.pid')
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^\d+/, String(process.pid)))
  assert.equal((await service('status')).code, 1)
  assert.equal((await service('stop')).code, 0)
  const again = await service('start', '--workers=1', ...freePorts)
  assert.equal(again.code, 0, again.output)
  assert.equal(Number(readFileSync(file, 'utf8').split('\n')[0]), pidOf(again.output))
})

test('two starts at once start one server, and both return when it is ready', async (t) => {
  const service = serviceOf(t)
  const started = await Promise.all([
    service('start', '--workers=1', ...freePorts),
    service('start', '--workers=1', ...freePorts),
  ])
  const [, admin] = /producers at (\S+?),/.exec(started[0].output) ?? []
  assert.equal((await fetch(`http://${admin}/readyz`)).status, 200)
  const told = started.map(({ output }) => output.replace(/^started|^already running/, 'it is'))
  assert.equal(told[0], told[1])
  assert.deepEqual(
    started.map(({ code }) => code),
    [0, 0],
  )
})

test('a start on a directory that another start has just locked waits for that one and writes nothing there', async (t) => {
  const service = serviceOf(t)
  mkdirSync(service.directory)
  const other = lockDirectory(service.directory)
  const start = await service('start', '--workers=1', ...freePorts)
  assert.equal(start.code, 1)
  assert.match(start.output, /the server that was starting on this directory did not become ready/)
  assert.deepEqual(readdirSync(service.directory).toSorted(), ['.lock', 'lock', 'postbote.log'])
  other.release()
  assert.equal((await service('start', '--workers=1', ...freePorts)).code, 0)
})

test('the lines of the log that a failed start prints are those of that start', async (t) => {
  const service = serviceOf(t)
  const place = ['--workers=1', '--admin-port=0', '--http-ip-address']
  assert.equal((await service('start', ...place, '127.0.0.1', '--http-port=0')).code, 0)
  assert.equal((await service('stop')).code, 0)
  const { output } = await service('start', ...place, '192.0.2.1', '--http-port=0')
  assert.match(output, /EADDRNOTAVAIL/)
  assert.doesNotMatch(output, /SIGTERM/)
})

test('SIGUSR1 to the primary opens the log file again in all processes after it was renamed', async (t) => {
  const service = serviceOf(t)
  const { output } = await service('start', '--workers=2', ...freePorts)
  const log = join(service.directory, 'postbote.log')
  const workers = (/workers (.*)/.exec((await service('status')).output)?.[1] ?? '').split(' ')
  const pids = [pidOf(output), ...workers.map(Number)]
  assert.equal(pids.length, 3)
  assert.deepEqual(
    pids.flatMap(openLogs),
    pids.map(() => log),
  )
  renameSync(log, `${log}.1`)
  process.kill(pidOf(output), 'SIGUSR1')
  await until(() => pids.flatMap(openLogs).every((file) => file === log))
  assert.deepEqual(
    pids.flatMap(openLogs),
    pids.map(() => log),
  )
  assert.equal((await service('reload')).code, 0)
  assert.match(readFileSync(log, 'utf8'), /"msg":"reloaded"/)
  assert.doesNotMatch(readFileSync(`${log}.1`, 'utf8'), /"msg":"reloaded"/)
})

/** The log files that a process has open, besides its standard output and standard error. */
function openLogs(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`)
    .filter((descriptor) => Number(descriptor) > 2)
    .map((descriptor) => linkOf(`/proc/${pid}/fd/${descriptor}`))
    .filter((file) => file.includes('postbote.log'))
}

/** Descriptors may be closed at any moment. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

test('a server that has ended counts as stopped even if no process has waited for it', async (t) => {
  const service = serviceOf(t)
  // The parent starts the server as its own child and never waits for it, like process 1 of many containers.
  const parent = spawn(
    'sh',
    [
      '-c',
      '"$0" "$@" & exec sleep 60',
      process.execPath,
      mainFile,
      'serve',
      ...parentOptions(service),
    ],
    { stdio: 'ignore' },
  )
  t.after(() => parent.kill('SIGKILL'))
  await until(async () => (await service('status')).output.includes('bots at'))
  const pid = pidOf((await service('status')).output)
  assert.deepEqual(await service('stop'), { code: 0, output: 'stopped\n' })
  assert.match(readFileSync(`/proc/${pid}/stat`, 'utf8'), /\) Z/)
})

function parentOptions({ directory }: Service): string[] {
  return ['--workers=1', ...freePorts, `--dir=${directory}`]
}

const freePorts = ['--http-port=0', '--admin-port=0']

type Service = ((
  verb: string,
  ...options: string[]
) => Promise<{ readonly code: number; readonly output: string }>) & { readonly directory: string }

function serviceOf(t: TestContext): Service {
  // Registered first, so that it runs before the directory is removed.
  t.after(() => service('stop'))
  const home = temporaryDirectory(t)
  const directory = join(home, 'data')
  const service = (verb: string, ...options: string[]) =>
    new Promise<{ code: number; output: string }>((resolve) => {
      const args = [script, verb, ...options, '--dir=data']
      execFile(process.execPath, args, { cwd: home }, (error, stdout, stderr) => {
        const code = error === null ? 0 : Number(error.code)
        resolve({ code, output: stdout + stderr })
      })
    })
  return Object.assign(service, { directory })
}

function pidOf(output: string): number {
  return Number(/process (\d+)/.exec(output)?.[1])
}
