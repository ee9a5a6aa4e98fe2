/**
 * The Unix socket by which the command line reaches the running server. It is in the run directory, which only the
 * server's user may enter. A command is one word on a line; the reply is one line of JSON. If a line `steps` follows the
 * command, lines of JSON with a `step` come before the reply. An older server ignores it.
 *
 * `<dir>/postbote.pid` has the primary's process id in the first line, as is common for such files, and the path of the
 * socket in the second. Only the socket proves that the server runs: by now the process id may be that of another
 * process.
 */
import {
  existsSync,
  lstatSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import type { Clock } from '../../kit/clock.ts'
import { messageOf } from '../../kit/errors.ts'

export type Command = 'status' | 'reload'

export interface ServerStatus {
  readonly pid: number
  readonly state: 'starting' | 'ready'
  /** The addresses to which the listeners are bound, once they are. */
  readonly bot?: string | undefined
  readonly private?: string | undefined
  /** Whether the private listener speaks TLS. An older server does not say it, nor what follows. */
  readonly isPrivateTls?: boolean
  /** The network namespace of these addresses (`networkOfProcess`). */
  readonly network?: string | undefined
  readonly workerPids?: readonly number[]
  /** Whether it runs with `--local`. */
  readonly local?: boolean
}

export interface CommandSocketOptions {
  /** The data directory, locked by this process. */
  readonly directory: string
  readonly runPath: string
  status(): ServerStatus
  /** Rejects with a message for the operator. `onStep` gets what the server says about it meanwhile. */
  reload(onStep: (step: string) => void): Promise<void>
}

type CommandResponse =
  | { readonly ok: true; readonly status?: ServerStatus }
  | { readonly ok: false; readonly error: string }

const socketName = 'control.sock'
/** The bits of a mode. A link has them all. */
const writableByOthers = 0o022

/** Opens the socket and writes the pid file. Returns a function that removes both. */
export async function openCommandSocket(options: CommandSocketOptions): Promise<() => void> {
  const path = join(options.runPath, socketName)
  const server = createServer((socket) => takeCommand(socket, options))
  rmSync(path, { force: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    // Without `exclusive`, node:cluster would share it with the workers.
    server.listen({ path, exclusive: true }, resolve)
  })
  server.on('error', () => undefined)
  const pidFile = pidFileOf(options.directory)
  const close = (): void => {
    rmSync(pidFile, { force: true })
    server.close()
  }
  try {
    writeFileSync(pidFile, `${process.pid}\n${path}\n`, { mode: 0o600 })
  } catch (error) {
    // An open socket would keep a server alive that cannot start, as on a full disk.
    close()
    throw error
  }
  return close
}

/** A command may have this many bytes: commands are single words, so longer input is not from the command line. */
const commandBytesMax = 64

function takeCommand(socket: Socket, options: CommandSocketOptions): void {
  let text = ''
  socket.setEncoding('utf8')
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: string) => {
    const isFirstLine = !text.includes('\n')
    text += chunk
    if (text.length > commandBytesMax) socket.destroy()
    else if (isFirstLine && text.includes('\n')) {
      void answerTo(socket, text.split('\n'), options)
    }
  })
}

async function answerTo(
  socket: Socket,
  [command, steps]: readonly string[],
  options: CommandSocketOptions,
): Promise<void> {
  const onStep = (step: string): void => {
    if (steps === 'steps' && socket.writable) socket.write(`${JSON.stringify({ step })}\n`)
  }
  const response = await obey(command, options, onStep)
  socket.end(`${JSON.stringify(response)}\n`)
}

async function obey(
  command: string | undefined,
  options: CommandSocketOptions,
  onStep: (step: string) => void,
): Promise<CommandResponse> {
  try {
    if (command === 'status') return { ok: true, status: options.status() }
    if (command !== 'reload') return { ok: false, error: 'expected status or reload' }
    await options.reload(onStep)
    return { ok: true }
  } catch (error) {
    return { ok: false, error: messageOf(error) }
  }
}

/**
 * Returns undefined if no server runs on the directory. Rejects if the server refuses the command or does not reply.
 *
 * @param onStep - gets what the server says before its reply
 */
export async function askServer(
  directory: string,
  command: Command,
  clock: Clock,
  onStep?: (step: string) => void,
): Promise<{ readonly status?: ServerStatus } | undefined> {
  const path = socketPathOf(directory)
  if (path === undefined || !isPrivate(dirname(path), directory)) return undefined
  const text = await exchange(path, { command, clock, onStep })
  if (text === undefined) return undefined
  const response: CommandResponse = JSON.parse(text)
  if (!response.ok) throw new Error(response.error)
  return response
}

/**
 * Returns a name of the network namespace of this process: in another one, as in a container, the same address belongs to
 * others. undefined where the system does not say it.
 */
export function networkOfProcess(): string | undefined {
  try {
    return readlinkSync('/proc/self/ns/net')
  } catch {
    return undefined
  }
}

/** Returns undefined if no server runs on the directory, or none that responds. */
export async function statusOf(directory: string, clock: Clock): Promise<ServerStatus | undefined> {
  const response = await askServer(directory, 'status', clock).catch(() => undefined)
  return response?.status
}

/** Returns whether a server was started here and did not end in order, if none runs now. */
export function hasStalePidFile(directory: string): boolean {
  return socketPathOf(directory) !== undefined
}

/** Throws if this user may not read it: then nobody knows whether a server runs. */
function socketPathOf(directory: string): string | undefined {
  let recorded: string | undefined
  try {
    recorded = readFileSync(pidFileOf(directory), 'utf8').split('\n')[1]
  } catch (error) {
    if (isForbidden(error)) throw error
    return undefined
  }
  if (recorded === undefined || existsSync(recorded)) return recorded
  // The server may know its directory by another path, as in a container.
  const here = join(directory, 'run', socketName)
  return existsSync(here) ? here : recorded
}

/**
 * Whether only the server's user, or this one, can have made a socket in a run directory. The run directory of a long path is below
 * /tmp, which is emptied now and then, and any user may make one of the same name after that.
 */
function isPrivate(runPath: string, directory: string): boolean {
  try {
    const { uid, mode } = lstatSync(runPath)
    const isOwn = uid === process.geteuid?.() || uid === statSync(directory).uid
    return isOwn && (mode & writableByOthers) === 0
  } catch (error) {
    if (isForbidden(error)) throw error
    return false
  }
}

/** Returns whether an error says that this user may not do it. */
export function isForbidden(error: unknown): boolean {
  return ['EACCES', 'EPERM'].includes(Object(error).code)
}

function pidFileOf(directory: string): string {
  return join(directory, 'postbote.pid')
}

interface Exchange {
  readonly command: Command
  readonly clock: Clock
  readonly onStep: ((step: string) => void) | undefined
}

/** A command waits this long for the primary's reply: the primary replies immediately unless it hangs. */
const commandResponseMs = 5_000

/** Resolves with the line of the reply; undefined if nobody listens. */
function exchange(path: string, { command, clock, onStep }: Exchange): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path })
    let text = ''
    // A reload has no time limit.
    const timer =
      command === 'status'
        ? clock.after(commandResponseMs, () =>
            socket.destroy(new Error('the server does not respond')),
          )
        : undefined
    socket.setEncoding('utf8')
    socket.once('connect', () =>
      socket.write(onStep === undefined ? `${command}\n` : `${command}\nsteps\n`),
    )
    socket.on('data', (chunk: string) => {
      const lines = (text + chunk).split('\n')
      // The last one is not complete, or empty after the reply.
      while (lines.length > 1 && lines[0]?.startsWith('{"step":') === true) {
        const { step }: { readonly step: string } = JSON.parse(lines.shift() ?? '')
        onStep?.(step)
      }
      text = lines.join('\n')
    })
    socket.once('end', () => {
      if (text.endsWith('\n')) resolve(text)
      else reject(new Error('the server ended before it responded'))
    })
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') resolve(undefined)
      else reject(error)
    })
    socket.once('close', () => timer?.cancel())
  })
}
