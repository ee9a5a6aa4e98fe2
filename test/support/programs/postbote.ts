/** Runs the commands of `postbote`, in the process of the test where that is possible. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type CommandEnd, runInProcess } from './run-in-process.ts'

/** The program as a file, for a test whose subject is a process. */
export const mainFile = fileURLToPath(new URL('../../../src/main.js', import.meta.url))
/** Commands that start processes, or last until a signal ends them. */
const processes: ReadonlySet<string | undefined> = new Set(['serve', 'tail', 'events', 'bench'])
/** Far longer than any command takes: whatever is ended by it hangs. */
const commandMsMax = 60_000

/**
 * Runs a command to its end.
 *
 * @param env - besides the environment of the test
 * @param input - what the command finds on standard input
 */
export function postbote(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  input = '',
): Promise<CommandEnd> {
  return processes.has(args[0])
    ? postboteProcess(args, env, input)
    : runInProcess(args, { env, input })
}

/** Runs a command that must do what it was asked to do. Returns what it wrote to standard output. */
export async function outputOf(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<string> {
  const { code, out, err } = await postbote(args, env)
  assert.equal(code, 0, err)
  return out
}

/** Runs a command as a process. One that does not end is killed, and its code is null. */
export async function postboteProcess(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  input = '',
): Promise<CommandEnd> {
  const child = spawn(process.execPath, [mainFile, ...args], { env: { ...process.env, ...env } })
  const texts = { out: '', err: '', output: '' }
  for (const [name, stream] of [
    ['out', child.stdout],
    ['err', child.stderr],
  ] as const) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text
      texts.output += text
    })
  }
  // It may end before it has read anything.
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const timer = setTimeout(() => child.kill('SIGKILL'), commandMsMax)
  const [code]: unknown[] = await once(child, 'close')
  clearTimeout(timer)
  return { code: typeof code === 'number' ? code : null, ...texts }
}
