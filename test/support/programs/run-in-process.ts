/**
 * Runs commands of `postbote` in the process of the test, several at once if need be: a process for each takes longer to
 * start than most commands run.
 *
 * A command reads and writes what belongs to its process: standard input and output, the environment and the exit code. From
 * the first command on, the global `process` of the test is a proxy that gives each command its own ones, whichever
 * callback asks, and to everybody else the real ones. The working directory and signals stay those of the test.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Readable, Writable } from 'node:stream'
import { outliveReaders } from '../../../src/cli/commands/run-command.ts'
import type { program } from './program-in-process.ts'

/** What the build makes of program-in-process.ts: one folder below dist/, as entry-files.ts says. */
const bundle = new URL('../../program-in-process.js', import.meta.url)

interface CommandInput {
  /** Besides the environment of the test. */
  readonly env: NodeJS.ProcessEnv
  /** What the command finds on standard input. */
  readonly input: string
  /** The width of the terminal to which the output goes. Default: it goes to none. */
  readonly columns?: number
  /** Whether nobody reads the output: the reader of its pipe has ended. */
  readonly isClosed?: boolean
}

export interface CommandEnd {
  /** Null if the command ran for too long and was ended. */
  readonly code: number | null
  readonly out: string
  readonly err: string
  /** Standard output and standard error, in the order in which they were written. */
  readonly output: string
}

/** What a command has instead of the properties of the real process. */
class OwnProcess {
  readonly env: NodeJS.ProcessEnv
  readonly stdin: Readable
  readonly stdout: Writable
  readonly stderr: Writable
  exitCode: number | undefined
  readonly texts = { out: '', err: '', output: '' }

  constructor({ env, input, columns, isClosed = false }: CommandInput) {
    this.env = { ...process.env, ...env }
    this.stdin = Readable.from(input === '' ? [] : [Buffer.from(input)])
    this.stdout = isClosed ? closedPipe() : this.#writer('out')
    if (columns !== undefined) Object.assign(this.stdout, { isTTY: true, columns })
    this.stderr = this.#writer('err')
    if (columns !== undefined) Object.assign(this.stderr, { isTTY: true, columns })
  }

  exit(code: number): never {
    throw new Error(`the command ended its process with ${code}: a test must run it in one`)
  }

  #writer(name: 'out' | 'err'): Writable {
    return new Writable({
      decodeStrings: false,
      write: (chunk: string | Buffer, _encoding, done) => {
        const text = chunk.toString()
        this.texts[name] += text
        this.texts.output += text
        done()
      },
    })
  }
}

/** As standard output of a process is, it stays open after an error. */
function closedPipe(): Writable {
  return new Writable({
    autoDestroy: false,
    write: (_chunk, _encoding, done) =>
      done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
  })
}

const running = new AsyncLocalStorage<OwnProcess>()
const names: ReadonlySet<string | symbol> = new Set([
  'env',
  'stdin',
  'stdout',
  'stderr',
  'exitCode',
  'exit',
])
let loaded: Promise<typeof program> | undefined

export async function runInProcess(
  argv: readonly string[],
  input: CommandInput = { env: {}, input: '' },
): Promise<CommandEnd> {
  loaded ??= load()
  const run = await loaded
  const own = new OwnProcess(input)
  await running.run(own, () => {
    outliveReaders(process)
    return run(argv)
  })
  return { code: own.exitCode ?? 0, ...own.texts }
}

async function load(): Promise<typeof program> {
  globalThis.process = new Proxy(process, {
    get: (real, name) => Reflect.get(ownOf(name) ?? real, name),
    set: (real, name, value) => Reflect.set(ownOf(name) ?? real, name, value),
  })
  const loadedBundle: { readonly program: typeof program } = await import(bundle.href)
  return loadedBundle.program
}

function ownOf(name: string | symbol): OwnProcess | undefined {
  return names.has(name) ? running.getStore() : undefined
}
