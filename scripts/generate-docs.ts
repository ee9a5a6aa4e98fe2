/** Writes the generated pages of docs/: `node dist/scripts/generate-docs.js`. A test proves them fresh. */
import { writeFileSync } from 'node:fs'
import { optionsPage } from '../src/config-text.ts'
import { errorsPage } from './errors-page.ts'

const docs = new URL('../../docs/', import.meta.url)

writeFileSync(new URL('options.md', docs), optionsPage())
writeFileSync(new URL('errors.md', docs), errorsPage())
