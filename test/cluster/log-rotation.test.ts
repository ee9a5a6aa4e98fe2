/** The log of several processes while its file is rotated: by renaming it and SIGUSR1, as docs/run/install.md says. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'

const logFile = new URL('../../src/cli/output/log.js', import.meta.url).href
const linesOfEach = 20_000

/** Writes numbered lines as quickly as it can, some in each turn of its event loop, so that signals get through. */
const program = `
  import { LogOfServer } from ${JSON.stringify(logFile)}
  const [file, lines] = process.argv.slice(1)
  const output = new LogOfServer()
  output.use({ logLevel: 'info', logFile: file })
  let reopened = 0
  process.on('SIGUSR1', () => {
    output.reopen()
    reopened += 1
    process.send(reopened)
  })
  let nth = 0
  const write = () => {
    for (const end = Math.min(nth + 20, lines); nth < end; nth++) output.log.info({ nth }, 'line')
    if (nth < lines) setImmediate(write)
    else process.send('done')
  }
  process.on('message', write)
  process.send('ready')
`

class Writer {
  readonly #child
  reopened = 0
  isDone = false

  constructor(t: TestContext, file: string) {
    const args = ['--input-type=module', '-e', program, file, `${linesOfEach}`]
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    t.after(() => this.#child.kill('SIGKILL'))
    this.#child.on('message', (message) => {
      if (message === 'done') this.isDone = true
      else this.reopened = Number(message)
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  async ready(): Promise<void> {
    await once(this.#child, 'message')
  }

  begin(): void {
    this.#child.send('begin')
  }

  rotate(): void {
    this.#child.kill('SIGUSR1')
  }
}

test('rotating the log while several processes write loses no line, repeats none and mixes none', async (t) => {
  const directory = temporaryDirectory(t)
  const log = join(directory, 'postbote.log')
  const writers = [1, 2, 3].map(() => new Writer(t, log))
  await Promise.all(writers.map((writer) => writer.ready()))
  for (const writer of writers) writer.begin()
  let rotations = 0
  while (writers.some(({ isDone }) => !isDone)) {
    rotations += 1
    renameSync(log, `${log}.${rotations}`)
    for (const writer of writers) writer.rotate()
    await until(() => writers.every(({ reopened }) => reopened === rotations))
  }
  assert(rotations > 3, `${rotations}`)
  const files = readdirSync(directory)
  assert.equal(files.length, rotations + 1)
  const written = new Map(writers.map(({ pid }) => [pid, new Set<number>()]))
  for (const file of files) {
    for (const line of readFileSync(join(directory, file), 'utf8').trimEnd().split('\n')) {
      if (line === '') continue
      const { pid, nth }: { pid: number; nth: number } = JSON.parse(line)
      const seen = written.get(pid)
      assert(seen !== undefined && !seen.has(nth), line)
      seen.add(nth)
    }
  }
  assert.deepEqual(
    [...written.values()].map(({ size }) => size),
    writers.map(() => linesOfEach),
  )
})
