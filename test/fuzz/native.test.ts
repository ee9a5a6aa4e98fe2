/**
 * The native code compared with JavaScript on drawn and damaged chunks of streams. `scripts/fuzz-native` runs this with more
 * chunks, and with others.
 *
 *     FUZZ_CHUNKS=10000000     the number of chunks
 *     FUZZ_SEED=2              other chunks; by default they are always the same, in CI, too
 *
 * Chunk N of a seed depends on both numbers alone. A failure prints them and the reduced chunk.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawnRuns } from '../support/kit/drawn-runs.ts'
import { Luck } from '../support/simulation/luck.ts'
import { drawChunk } from './native/draw-chunk.ts'
import { decided, differenceOf } from './native/difference-of.ts'
import { minimized } from './native/minimized.ts'

const chunks = Number(process.env['FUZZ_CHUNKS'] ?? drawnRuns(100_000))
const seed = Number(process.env['FUZZ_SEED'] ?? 1)

test('the native code decides and writes what JavaScript does, for every chunk of a stream', (t) => {
  // A third of the updates are refused, and nobody reads the stacks.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  t.after(() => {
    Error.stackTraceLimit = stackTraceLimit
  })
  for (let nth = 0; nth < chunks; nth++) {
    const chunk = drawChunk(new Luck(seed * 2 ** 24 + nth))
    if (differenceOf(chunk) === undefined) continue
    const least = minimized(chunk, (each) => differenceOf(each) !== undefined)
    assert.fail(
      `${differenceOf(least)}\nchunk ${nth} of seed ${seed}, reduced: ${JSON.stringify(least.toString('latin1'))}`,
    )
  }
  t.diagnostic(`seed ${seed}, ${chunks} chunks, ${JSON.stringify(decided)}`)
  for (const count of Object.values(decided))
    assert.ok(count > chunks / 20, JSON.stringify(decided))
})

test('the native code reads headers as JavaScript does that luck hardly draws', () => {
  const fields = [
    '"test":true,"test":false',
    '"test":false,"test":true',
    '"validate":"telegram","validate":null',
    '"ttl":60,"ttl":0',
    '"ttl":31536000',
    '"ttl":31536001',
    '"ttl":4294967356',
    '"ordering_key":"a","ordering_key":2',
    '"idempotency_key":"a","idempotency_key":"b"',
    '"idempotency_key":"a\u001f"',
    '"idempotency_key":"a\u007f"',
    '"idempotency_key":"a~"',
    '"ordering_key":01',
    '\f"test":true',
    '"test":true\u000b',
    '"test":fals',
    `"ordering_key":${'7'.repeat(256)}`,
    `"ordering_key":${'7'.repeat(257)}`,
  ]
  for (const field of fields) {
    for (const bot of [
      '100',
      '99',
      '4503599627370495',
      '4503599627370496',
      '18446744073709551716',
    ]) {
      const chunk = Buffer.from(`{"bot_id":${bot},${field}}\n{"poll":{"id":"1"}}\n`)
      assert.equal(differenceOf(chunk), undefined, field)
    }
  }
})
