/**
 * Compares the native code with JavaScript for the inputs in folders, each as a chunk and as an update of one:
 * `node dist/test/fuzz/native/compare-inputs.js FOLDER ...`.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { decided, differenceOf } from './difference-of.ts'
import { minimized } from './minimized.ts'

const header = Buffer.from('{"bot_id":1000}\n')
let inputs = 0
for (const folder of process.argv.slice(2)) {
  for (const name of readdirSync(folder)) {
    const input = readFileSync(join(folder, name))
    inputs++
    for (const chunk of [input, Buffer.concat([header, input])]) {
      if (differenceOf(chunk) === undefined) continue
      const least = minimized(chunk, (each) => differenceOf(each) !== undefined)
      console.log(`${differenceOf(least)}\nreduced: ${JSON.stringify(least.toString('latin1'))}`)
      process.exitCode = 1
    }
  }
}
console.log(`${inputs} inputs, ${JSON.stringify(decided)}`)
