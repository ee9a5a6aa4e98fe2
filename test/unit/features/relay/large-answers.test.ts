import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { systemClock } from '../../../../src/kit/clock.ts'
import { answerReadTimeoutMs, LargeAnswers } from '../../../../src/features/relay/large-answers.ts'
import { relayAnswerBytesMax } from '../../../../src/features/relay/limits.ts'
import { readOriginAnswer } from '../../../../src/features/relay/read-origin-answer.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { silentLog } from '../../../support/kit/silent-log.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

const options = {
  clock: systemClock,
  log: silentLog,
  origin: 'https://origin.example',
  pendingMax: 1,
}
const raw = { status: 200, retryAfter: undefined, nowMs: 0 }
const list = '{"ok":true,"result":['
const update = `${list}{"update_id":1,"message":{"chat":{"id":5},"a":`

/** Returns as many bytes as an answer may have. */
function filled(before: string, unit: string, after: string): Buffer {
  const room = relayAnswerBytesMax - before.length - after.length
  return Buffer.from(before + unit.repeat(Math.floor(room / unit.length)) + after)
}

const hostile: Readonly<Record<string, Buffer>> = {
  brackets: filled('', '[', ''),
  'brackets in an update': filled(update, '[', ''),
  'nested objects': filled('', '{"a":', ''),
  'nested objects in an update': filled(update, '{"a":', ''),
  'tiny updates': filled(list, '{"update_id":1},', '{"update_id":2}]}'),
  'a string with escapes': filled(`${update}"`, '\\n', '"}}]}'),
  'numbers in an array': filled(`${update}[`, '1,', '1]}}]}'),
  'empty strings': filled(`${update}[`, '"",', '""]}}]}'),
  'keys with escapes': filled('{"ok":true,', '"\\u0061aaaaa":1,', '"result":[]}'),
  'members of an update': filled(`${list}{"update_id":1,`, '"\\u0061":1,', '"b":1}]}'),
  'keys of a message': filled(
    `${list}{"update_id":1,"message":{`,
    '"\\u0061aaaaaa":5,',
    '"b":1}}]}',
  ),
  digits: filled(update, '1', '}}]}'),
  blanks: filled(list, ' ', ']}'),
}

/** The CPU time of the thread that asks, so that no other thread and no other process counts. */
function ownCpuMs(): number {
  const [ns = ''] = readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ', 1)
  return Number(ns) / 1e6
}

/** The cheapest of three runs: what the compiler and the collector of the process do meanwhile is no cost of the reading. */
async function cheapest<Run extends { readonly tookMs: number }>(run: () => Promise<Run>) {
  const runs = [await run(), await run(), await run()].toSorted((a, b) => a.tookMs - b.tookMs)
  return runs[0] ?? assert.fail()
}

test('whatever a large answer has, the event loop does little of the reading, and the result is the same', async (t) => {
  const answers = new LargeAnswers(options)
  t.after(() => answers.close())
  // Starting the thread takes time, too.
  await answers.read({ ...raw, body: Buffer.from(`${list}]}`) })
  for (const [shape, body] of Object.entries(hostile)) {
    const startMs = ownCpuMs()
    const inPlace = readOriginAnswer({ ...raw, body })
    const inPlaceMs = ownCpuMs() - startMs
    const { answer, tookMs } = await cheapest(async () => {
      const readMs = ownCpuMs()
      const read = await answers.read({ ...raw, body })
      return { answer: read, tookMs: ownCpuMs() - readMs }
    })
    assert.deepEqual(answer, inPlace, shape)
    // One that is refused at its first updates takes no time anywhere.
    const isDear = inPlaceMs > 20
    assert(!isDear || tookMs < inPlaceMs / 2, `${shape}: ${tookMs} of ${inPlaceMs} ms`)
  }
})

test('an answer is a failure if the thread has no room for it or has ended', async () => {
  const answers = new LargeAnswers(options)
  const body = Buffer.from(`${list}]}`)
  const reads = [1, 2].map(() => answers.read({ ...raw, body }))
  const [first, second] = await Promise.all(reads)
  assert.deepEqual(first, { updates: [] })
  assert(second !== undefined && 'failure' in second)
  assert.match(second.failure.reason, /thread that reads large answers/)
  await answers.close()
  assert('failure' in (await answers.read({ ...raw, body })))
})

/** For the thread that runs out of memory: what V8 gives each on a large machine takes it a minute to fill. */
const threadHeapMib = 128
/** V8's own choice. */
const anyHeapMib = 0

function limitHeaps(mib: number): void {
  setFlagsFromString(`--max-old-space-size=${mib}`)
}

const threadFailures: Readonly<Record<string, readonly [source: string, cause: RegExp]>> = {
  throws: ["throw new Error('no such member')", /no such member/],
  exits: ['process.exit(7)', /exit.*7/],
  'runs out of memory': ['const all = []; for (;;) all.push(Array(1e5).fill({}))', /memory/],
  'does not end': ['for (;;) continue', /^an answer was not read within 30 s$/],
}

for (const [name, [source, cause]] of Object.entries(threadFailures)) {
  test(`a thread that ${name} fails the poll, which asks for less, and the log says why; the next answer is read`, async (t) => {
    limitHeaps(threadHeapMib)
    t.after(() => limitHeaps(anyHeapMib))
    const clock = new FakeClock()
    const lines: [object, string][] = []
    const log = { ...silentLog, error: (...line: [object, string]) => void lines.push(line) }
    const own = `export default ({ bytes }) => { if (bytes > 100) { ${source} } return { places: [] } }`
    const file = join(temporaryDirectory(t), 'thread.mjs')
    await writeFile(file, own)
    const filename = pathToFileURL(file).href
    const answers = new LargeAnswers({ ...options, clock, log, filename })
    t.after(() => answers.close())
    const bad = answers.read({ ...raw, body: Buffer.alloc(200) })
    await clock.advance(0)
    if (name === 'does not end') await clock.advance(answerReadTimeoutMs)
    const answer = await bad
    assert('failure' in answer)
    assert.equal(answer.failure.isTooLarge, true)
    assert.equal(lines.length, 1)
    const [[fields, text] = assert.fail()] = lines
    assert.equal(text, 'the thread that reads large answers of an origin failed')
    assert.match(JSON.stringify(fields), /"origin":"https:\/\/origin\.example"/)
    assert.match(String(Object.values(fields).at(-1)), cause)
    const good = await answers.read({ ...raw, body: Buffer.alloc(50) })
    assert.deepEqual(good, { updates: [] })
    assert.equal(clock.timers, 0)
  })
}
