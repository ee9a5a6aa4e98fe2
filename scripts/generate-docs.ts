/** Writes the generated pages of docs/: `node dist/scripts/generate-docs.js`. Tests check that they are up to date. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { commandTable } from '../src/modules/command-table.ts'
import { commandsPage } from '../src/cli/commands/commands-page.ts'
import { optionsPage } from '../src/config/config-text.ts'
import { type Cell, columns, withColumn } from './clients-table.ts'
import { withCallsTable } from './calls-table.ts'
import { withSignatures } from './client-signatures.ts'
import { errorsPage } from './errors-page.ts'
import { goTables } from './go-tables.ts'
import { limitsPage } from './limits-page.ts'
import { openApiPage } from './openapi-page.ts'
import { promisedNames } from './promised-names.ts'
import { pythonTables } from './python-tables.ts'
import { roomsPicture } from './rooms-picture.ts'
import { withKindsTables } from './kinds-tables.ts'

const docs = new URL('../../docs/', import.meta.url)
const pythonPackage = new URL('../../clients/python/postbote_client/', import.meta.url)
/** The results of the last runs of test/clients. */
const runs = new URL('../clients/', import.meta.url)

writeFileSync(new URL('reference/cli.md', docs), commandsPage(commandTable))
writeFileSync(new URL('reference/options.md', docs), optionsPage())
writeFileSync(new URL('reference/errors.md', docs), errorsPage())
writeFileSync(new URL('reference/limits.md', docs), limitsPage())
writeFileSync(new URL('inside/rooms.svg', docs), roomsPicture())
writeFileSync(new URL('use/frameworks.md', docs), clientsPage())
writeFileSync(new URL('reference/openapi.json', docs), await openApiPage())
writeFileSync(new URL('_tables.py', pythonPackage), pythonTables())
const apiPage = new URL('use/api.md', docs)
writeFileSync(apiPage, withCallsTable(readFileSync(apiPage, 'utf8')))
const storagePage = new URL('inside/storage.md', docs)
writeFileSync(storagePage, withKindsTables(readFileSync(storagePage, 'utf8')))
const clientPage = new URL('use/client.md', docs)
writeFileSync(clientPage, withSignatures(readFileSync(clientPage, 'utf8')))
writeFileSync(new URL('../clients/go/tables.go', docs), goTables())
const promisedFile = new URL('../test/fixtures/promised.txt', docs)
const promised = new Set(readFileSync(promisedFile, 'utf8').trim().split('\n'))
const added = (await promisedNames()).filter((name) => !promised.has(name))
for (const name of added) promised.add(name)
writeFileSync(promisedFile, `${[...promised].toSorted().join('\n')}\n`)
if (added.length > 0) {
  console.log(
    `test/fixtures/promised.txt: promised for all of 1.x from now on: ${added.join(', ')}`,
  )
}

function clientsPage(): string {
  let page = readFileSync(new URL('use/frameworks.md', docs), 'utf8')
  for (const column of columns) {
    const file = new URL(`${column}.json`, runs)
    if (!existsSync(file)) continue
    const cells: readonly Cell[] = JSON.parse(readFileSync(file, 'utf8'))
    page = withColumn(page, column, cells)
  }
  return page
}
