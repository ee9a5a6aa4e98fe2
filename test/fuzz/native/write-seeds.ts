/** Writes what libFuzzer begins with into a folder: the inputs of each target, a dictionary, and the table of types. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { typeLines } from '../../../src/queue/check/check-batch.ts'
import { idPaths } from '../../../src/queue/check/ordering-key.ts'
import { updateTypes } from '../../../src/kit/update-types.ts'
import { Luck } from '../../support/simulation/luck.ts'
import { drawChunk } from './draw-chunk.ts'

const chunks = 500
const recordBytes = 300
const [, , folder = '.'] = process.argv

function write(target: string, name: string, bytes: Buffer): void {
  mkdirSync(join(folder, `${target}-inputs`), { recursive: true })
  writeFileSync(join(folder, `${target}-inputs`, name), bytes)
}

for (let nth = 0; nth < chunks; nth++) {
  const luck = new Luck(nth)
  const chunk = drawChunk(luck)
  write('split_pairs', `${nth}`, chunk)
  for (const [at, line] of chunk.toString('latin1').split('\n').entries()) {
    if (at % 2 === 1) write('check_updates', `${nth}-${at}`, Buffer.from(line, 'latin1'))
  }
  const numbers = Array.from({ length: recordBytes }, () => luck.skewed(255))
  write('encode_records', `${nth}`, Buffer.from(numbers))
}
const names = idPaths.flat().flatMap((path) => path.split('.'))
const fields = ['bot_id', 'ordering_key', 'idempotency_key', 'ttl', 'test', 'validate', 'telegram']
const headers = [...fields, 'traceparent']
const words = [...updateTypes, ...names, ...headers].map((name) => `\\"${name}\\"`)
const dictionary = [...words, 'true', 'false', 'null', '\\\\ud83d\\\\ude00'].map(
  (word) => `"${word}"`,
)
writeFileSync(join(folder, 'dictionary'), `${[...new Set(dictionary)].join('\n')}\n`)
writeFileSync(join(folder, 'types'), typeLines().join('\n'))
