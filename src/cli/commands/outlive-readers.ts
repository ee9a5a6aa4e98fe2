/**
 * Without listeners, an error of standard output or standard error ends a process with a stack trace. A reader that has
 * seen enough, as in `postbote bots list | head -1`, is no failure: the command goes on, because it may be in the middle
 * of a change, and nothing more is shown. Anything else, such as a full disk, is a failure, because the result is lost.
 */
export function outliveReaders({
  stdout,
  stderr,
}: Pick<NodeJS.Process, 'stdout' | 'stderr'>): void {
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return
    stderr.write(`postbote: cannot write to standard output (${error.code})\n`)
    process.exitCode = 1
  })
  stderr.on('error', () => undefined)
}
