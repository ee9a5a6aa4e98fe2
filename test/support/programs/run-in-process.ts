/**
 * Runs a command of `postbote` in the process of the test: a process of its own takes half a second of CPU. It takes over
 * standard output, standard error and the exit code, so one command runs at a time.
 */
import { runCommand } from '../../../src/cli/commands/run-command.ts'
import { runProgram } from '../../../src/cli/commands/run-program.ts'

export interface CommandRun {
  readonly code: number
  readonly out: string
  readonly err: string
}

export async function runInProcess(argv: readonly string[]): Promise<CommandRun> {
  const texts = { stdout: '', stderr: '' }
  const restored = (['stdout', 'stderr'] as const).map((name) => {
    const stream = process[name]
    const write = stream.write.bind(stream)
    // Commands write text. What the runner of the tests writes meanwhile is bytes.
    stream.write = (chunk: string | Uint8Array): boolean => {
      if (typeof chunk !== 'string') return write(chunk)
      texts[name] += chunk
      return true
    }
    return () => (stream.write = write)
  })
  const before = process.exitCode
  process.exitCode = 0
  try {
    await runCommand(() => runProgram(argv))
    return { code: process.exitCode, out: texts.stdout, err: texts.stderr }
  } finally {
    process.exitCode = before
    restored.forEach((restore) => restore())
  }
}
