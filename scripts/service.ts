/**
 * `./scripts/service`: runs the server in the background, for machines without another process manager.
 *
 *   start    in its own session, with its log in a file; returns when it is ready
 *   stop     SIGTERM; returns when it has ended
 *   restart  both
 *   reload   replaces its workers without failing a request; returns when that is done
 *   status   reports whether it runs, and where
 *   logs     the end of the log file; -f follows it
 *
 * The exit codes are those of init scripts (LSB). The script asks the server whether it runs, and never guesses that from
 * a process id, which may be that of another process by now.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sleep, systemClock } from '../src/kit/clock.ts'
import { askServer, hasStalePidFile, type ServerStatus } from '../src/cli/serve/command-socket.ts'
import { ConfigError } from '../src/config/config.ts'
import { configOf, lockedExitCode, runCommand } from '../src/cli/commands/run-command.ts'
import { startMsMax, stopMsMax } from './service-limits.ts'

const usage = `Usage: ./scripts/service start|stop|restart|reload|status|logs [options]

  start, restart   every option of "postbote serve"
  stop, reload, status   [--dir DIR]
  logs             [-f] [--log-file FILE] [--dir DIR]

DIR is ./data by default, and --log-file is DIR/postbote.log. Exit codes: 0 success, or running; 1 failure; 2 unusable
options; of status: 1 died, 3 not running, 4 does not respond; of reload: 7 not running.
`

const mainFile = fileURLToPath(new URL('../src/main.js', import.meta.url))
const lookMs = 100
/** A server replies a moment after it takes the lock; one that is silent for longer has ended. */
const silentMsMax = 5_000

interface Request {
  readonly directory: string
  readonly logFile: string
  readonly follows: boolean
  /** The options for `serve`. */
  readonly options: readonly string[]
}

const verbs: Readonly<Record<string, (request: Request) => Promise<number>>> = {
  start,
  stop,
  restart: async (request) => (await stop(request)) || start(request),
  reload,
  status,
  logs,
}

await runCommand(async () => {
  const [verb = '', ...rest] = process.argv.slice(2)
  if (rest.includes('--help') || ['', 'help', '--help', '-h'].includes(verb)) {
    process.stdout.write(usage)
    return
  }
  const run = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined
  if (run === undefined) {
    throw new ConfigError([`unknown command ${JSON.stringify(verb)}: see scripts/service --help`])
  }
  process.exitCode = await run(requestOf(rest))
})

async function start(request: Request): Promise<number> {
  const { directory, logFile, options } = request
  if ((await statusOf(directory)) !== undefined) return alreadyRunning(directory)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  // Only what Node.js itself prints, as at a crash, comes from standard output and standard error.
  const log = openSync(logFile, 'a', 0o600)
  const logStart = fstatSync(log).size
  const server = spawn(process.execPath, [mainFile, 'serve', ...options, `--log-file=${logFile}`], {
    detached: true,
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  const ready = await untilReady(directory, server)
  if (ready !== undefined) {
    server.unref()
    process.stdout.write(`started: ${described(ready)}\n`)
    return 0
  }
  // Another start was faster.
  if (server.exitCode === lockedExitCode) return alreadyRunning(directory)
  process.stderr.write(
    `the server did not start; these are the last lines of ${logFile}:\n${endOf(logFile, logStart)}`,
  )
  return 1
}

/** Returns when that server is ready, as if it had been started here. It may have the lock already, and no socket yet. */
async function alreadyRunning(directory: string): Promise<number> {
  let silentMs = 0
  for (let leftMs = startMsMax; leftMs > 0 && silentMs < silentMsMax; leftMs -= lookMs) {
    const running = await statusOf(directory).catch(() => undefined)
    silentMs = running === undefined ? silentMs + lookMs : 0
    if (running?.state === 'ready') {
      process.stdout.write(`already running: ${described(running)}\n`)
      return 0
    }
    await wait(lookMs)
  }
  process.stderr.write('the server that was starting on this directory did not become ready\n')
  return 1
}

async function stop({ directory }: Request): Promise<number> {
  const running = await statusOf(directory)
  if (running === undefined) {
    process.stdout.write('not running\n')
    return 0
  }
  process.kill(running.pid, 'SIGTERM')
  for (let leftMs = stopMsMax; leftMs > 0; leftMs -= lookMs) {
    if (!isAlive(running.pid)) {
      process.stdout.write('stopped\n')
      return 0
    }
    await wait(lookMs)
  }
  process.stderr.write(`process ${running.pid} has not ended after ${stopMsMax / 1000} s\n`)
  return 1
}

async function reload({ directory }: Request): Promise<number> {
  const answer = await askServer(directory, 'reload', systemClock)
  if (answer === undefined) {
    process.stderr.write('not running\n')
    return 7
  }
  process.stdout.write('reloaded\n')
  return 0
}

async function status({ directory }: Request): Promise<number> {
  let running: ServerStatus | undefined
  try {
    running = await statusOf(directory)
  } catch (error) {
    process.stdout.write(`in an unknown state: ${String(error)}\n`)
    return 4
  }
  if (running !== undefined) {
    process.stdout.write(`running: ${described(running)}\n`)
    return 0
  }
  const died = hasStalePidFile(directory)
  process.stdout.write(died ? 'not running: it did not end cleanly\n' : 'not running\n')
  return died ? 1 : 3
}

async function logs({ logFile, follows }: Request): Promise<number> {
  if (!existsSync(logFile)) throw new Error(`there is no log file ${logFile}`)
  const tail = spawn('tail', ['-n', '100', ...(follows ? ['-F'] : []), logFile], {
    stdio: 'inherit',
  })
  await once(tail, 'exit')
  return tail.exitCode === 0 ? 0 : 1
}

/** Returns undefined if the server has ended before it was ready, or was killed because it took too long. */
async function untilReady(
  directory: string,
  server: ChildProcess,
): Promise<ServerStatus | undefined> {
  for (let leftMs = startMsMax; leftMs > 0 && isRunning(server); leftMs -= lookMs) {
    const now = await statusOf(directory).catch(() => undefined)
    if (now?.state === 'ready' && now.pid === server.pid) return now
    await wait(lookMs)
  }
  if (isRunning(server)) server.kill('SIGKILL')
  return undefined
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

async function statusOf(directory: string): Promise<ServerStatus | undefined> {
  return (await askServer(directory, 'status', systemClock))?.status
}

function described({ pid, state, bot, private: admin, workerPids }: ServerStatus): string {
  if (state === 'starting') return `process ${pid}, starting`
  const workers = workerPids === undefined ? '' : `, workers ${workerPids.join(' ')}`
  return `process ${pid}, bots at ${bot}, producers at ${admin}${workers}`
}

/** Separates the option of this script from those of the server. */
function requestOf(argv: readonly string[]): Request {
  const options = argv.filter((argument) => argument !== '-f')
  const config = configOf(options)
  const directory = resolve(config.dir)
  const logFile = resolve(config.logFile ?? join(directory, 'postbote.log'))
  return { directory, logFile, follows: options.length < argv.length, options }
}

/** The last lines from a byte on: earlier lines are those of earlier servers. */
function endOf(file: string, startByte: number): string {
  const text = readFileSync(file).subarray(startByte).toString()
  return `${text.trimEnd().split('\n').slice(-10).join('\n')}\n`
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !isZombie(pid)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/**
 * Whether the process has ended and nobody has waited for it: it stays like that if process 1 of a container does not
 * wait for orphans.
 */
function isZombie(pid: number): boolean {
  try {
    return /\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

/** The timers of the clock do not keep a process alive. */
async function wait(delayMs: number): Promise<void> {
  const keepAlive = setInterval(() => undefined, delayMs)
  await sleep(systemClock, delayMs)
  clearInterval(keepAlive)
}
