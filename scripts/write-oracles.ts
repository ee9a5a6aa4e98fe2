/** Writes test/fixtures/oracles/: `./scripts/oracles`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { oracles, oraclesFolder } from './oracles.ts'

mkdirSync(oraclesFolder, { recursive: true })
for (const [name, make] of Object.entries(oracles)) {
  writeFileSync(new URL(name, oraclesFolder), await make())
}
