/** Checks the documentation: generated pages are up to date, and whatever the pages name exists. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { withCallsTable } from '../scripts/calls-table.ts'
import { withSignatures } from '../scripts/client-signatures.ts'
import { errorsPage } from '../scripts/errors-page.ts'
import { goTables } from '../scripts/go-tables.ts'
import { constantsOfSources, limitsPage } from '../scripts/limits-page.ts'
import { openApiPage } from '../scripts/openapi-page.ts'
import { pythonTables } from '../scripts/python-tables.ts'
import { roomsPicture } from '../scripts/rooms-picture.ts'
import { metricsPage } from '../src/features/server/metrics-page.ts'
import { commandTable } from '../src/modules/command-table.ts'
import { commandsPage } from '../src/cli/commands/commands-page.ts'
import { clientDefaults, streamDefaults } from '../clients/typescript/client-options.ts'
import { clientErrorKinds } from '../clients/typescript/postbote-client-error.ts'
import { PostboteClient } from '../clients/typescript/postbote-client.ts'
import { slotOfBot } from '../src/process/shard-map.ts'
import { optionRows } from '../src/config/config-options.ts'
import { errorKinds } from '../src/kit/errors.ts'
import { assertTelegramFields } from '../src/queue/check/telegram-fields.ts'
import { operatorEventTypes } from '../src/kit/operator-event.ts'
import { forEachMetric } from '../src/kit/metrics.ts'
import { deriveOrderingKey } from '../src/queue/check/ordering-key.ts'
import { expiresAtS } from '../src/queue/check/time-to-live.ts'
import { type AddedType, typesOfReference } from '../src/kit/added-type.ts'
import { defaultTypesMask, isInMask, updateTypes } from '../src/kit/update-types.ts'
import { SignatureHeaders } from '../src/delivery/signature.ts'
import { frameworks } from './clients/frameworks.ts'
import { documentedUpdates } from './support/server/documented-updates.ts'
import { FakeClock } from './support/kit/fake-clock.ts'
import { noTimes } from './support/kit/no-times.ts'
import { checkUpdate } from './support/producers/update-verdict.ts'
import { withKindsTables } from '../scripts/kinds-tables.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'examples/README.md',
  'test/soak/README.md',
  'test/soak/report.md',
  'test/nemeses/report.md',
  'test/relay/report.md',
  'bench/README.md',
  'bench/results/README.md',
  'clients/conformance/README.md',
  'clients/conformance/report.md',
  'clients/go/README.md',
  'clients/python/README.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map(
    (name) => `docs/${name}`,
  ),
].filter((page) => page.endsWith('.md'))
const protocol = 'docs/use/protocol.md'

test('CI runs the command that the README gives for every test', () => {
  const [, command = ''] = /^(\S+ --all) +# .*\bruns every test$/m.exec(read('README.md')) ?? []
  assert(read('.ci/run').endsWith(`\nexec ${command}\n`), command)
  assert(read('CONTRIBUTING.md').includes(`\n${command} `), command)
  assert.equal(JSON.parse(read('package.json')).scripts.test, `exec ${command}`)
})

test('docs/reference/errors.md is up to date (npm run docs writes it)', () => {
  assert.equal(read('docs/reference/errors.md'), errorsPage())
})

test('clients/go/tables.go is up to date (npm run docs writes it)', () => {
  assert.equal(read('clients/go/tables.go'), goTables())
})

test('docs/inside/rooms.svg is up to date (npm run docs writes it)', () => {
  assert.equal(read('docs/inside/rooms.svg'), roomsPicture())
})

test('the files of the ways in docs/inside/design.md are in rooms that their rows name', () => {
  const rows = [...read('docs/inside/design.md').matchAll(/^\| \d+ \| (.*?) \| (.*?) \| .* \|$/gm)]
  assert(rows.length > 20)
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const missing = rows.flatMap(([, rooms = '', files = '']) =>
    namesIn(files)
      .filter((name) => {
        const found = sources.filter((source) => source.endsWith(`/${name}.ts`))
        return !found.some((source) => namesIn(rooms).includes(source.replace(/\/.*/, '')))
      })
      .map((name) => `${name} in ${rooms}`),
  )
  assert.deepEqual(missing, [])
})

test('docs/run/operations.md has a row for each type of event', () => {
  const rows = matches('docs/run/operations.md', /^\| (`[a-z_.`, ]+`) \| /gm).flatMap((cell) =>
    [...cell.matchAll(/`(\w+\.\w+)`/g)].map(([, type = '']) => type),
  )
  assert.deepEqual(
    operatorEventTypes.filter((type) => !rows.includes(type)),
    [],
  )
})

test('docs/inside/design.md can be read in one go: it has at most 2,500 words', () => {
  assert(read('docs/inside/design.md').split(/\s+/).length <= 2_500)
})

test('docs/reference/openapi.json is up to date (npm run docs writes it)', async () => {
  assert.equal(read('docs/reference/openapi.json'), await openApiPage())
})

test('the client for Python has the codes and defaults of the one for TypeScript (npm run docs writes them)', () => {
  assert.equal(read('clients/python/postbote_client/_tables.py'), pythonTables())
})

test('docs/use/api.md and docs/reference/openapi.json have the same calls', () => {
  const document: Paths = JSON.parse(read('docs/reference/openapi.json'))
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const shown = matches('docs/use/api.md', /^\| (`[A-Z]{3,6}\b.*?`) \|/gm).flatMap(callsIn)
  // The page names the verb of probes in a sentence.
  const others = described.filter((call) => !call.startsWith('HEAD '))
  assert.deepEqual(shown.toSorted(), others.toSorted())
})

test('docs/reference/cli.md is up to date (npm run docs writes it)', () => {
  assert.equal(read('docs/reference/cli.md'), commandsPage(commandTable))
})

test('links between pages have targets that exist', () => {
  const dead = pages.flatMap((page) =>
    matches(page, /\]\((?!https?:)([^)#]+)/g)
      .filter((link) => !existsSync(join(root, dirname(page), link)))
      .map((link) => `${page}: ${link}`),
  )
  assert.deepEqual(dead, [])
})

test('files named in the documentation exist', () => {
  const folder = /`((?:src|workers|scripts|test|native-bindings)\/[\w./-]*|scripts\/[\w-]+)`/g
  const missing = pages.flatMap((page) =>
    matches(page, folder)
      .filter((file) => !existsSync(join(root, file)))
      .map((file) => `${page}: ${file}`),
  )
  assert.deepEqual(missing, [])
})

test('options named in the documentation exist', () => {
  const known = new Set(optionRows.flatMap(([, row]) => [row.name, `no-${row.name}`]))
  for (const { options } of commandTable) for (const { name } of options) known.add(name)
  // Options of all commands, of curl, sha256sum and the tests.
  for (const name of ['help', 'version', 'data-binary', 'ignore-missing', 'test']) known.add(name)
  // Options of npm, systemctl, docker and helm.
  const install = 'docs/run/install.md'
  const ofInstallers =
    'omit prefix now name stop-timeout read-only cap-drop ulimit init build-arg build set allow-downgrades'.split(
      ' ',
    )
  // The benchmarks and the soak harness have separate options.
  const others = /(?:\/(?:benchmarks|report)|^test\/soak\/README|^bench\/.*)\.md$/
  const ofServer = pages.filter((page) => !others.test(page))
  const unknown = ofServer.flatMap((page) =>
    matches(page, /(?<=[\s`(])--([a-z][a-z-]+)/g)
      .filter((name) => !known.has(name))
      .filter((name) => page !== install || !ofInstallers.includes(name))
      .map((name) => `${page}: --${name}`),
  )
  assert.deepEqual(unknown, [])
})

test('error codes named in the documentation exist', () => {
  // Environment variables.
  const others =
    /^(?:POSTBOTE|OTEL)_|^(?:NOTIFY_SOCKET|WATCHDOG_USEC|TELOXIDE_API_URL|SSL_CERT_FILE|NODE_EXTRA_CA_CERTS|BOT_TOKEN|API_ROOT|ADMIN_(?:URL|KEY)|PLATFORM_PORT)$/
  const isOfClient = /^(?:clients\/|docs\/use\/client\.md$)/
  const unknown = pages.flatMap((page) =>
    matches(page, /(?<=[`"])([A-Z]+_[A-Z_]+)(?=[`"])/g)
      .filter((code) => !(code in errorKinds) && !others.test(code))
      .filter((code) => !isOfClient.test(page) || !(code in clientErrorKinds))
      .map((code) => `${page}: ${code}`),
  )
  assert.deepEqual(unknown, [])
})

test('docs/use/api.md has the table of calls (npm run docs writes it)', () => {
  const page = read('docs/use/api.md')
  assert.equal(page, withCallsTable(page))
})

test('docs/inside/storage.md has the tables of kinds of records (npm run docs writes them)', () => {
  const page = read('docs/inside/storage.md')
  assert.equal(page, withKindsTables(page))
})

test('docs/use/client.md has every signature of the client (npm run docs writes them)', () => {
  const page = read('docs/use/client.md')
  assert.equal(page, withSignatures(page))
  for (const name of Object.getOwnPropertyNames(PostboteClient.prototype)) {
    assert(page.includes(`  ${name}`), name)
  }
})

test('docs/use/client.md has every error code of the client and every default', () => {
  const page = read('docs/use/client.md')
  for (const code of Object.keys(clientErrorKinds)) assert(page.includes(`\n| \`${code}\` |`), code)
  const { retryDelayMsMin, retryDelayMsMax, ...others } = clientDefaults
  for (const [name, value] of Object.entries(others)) {
    assert(page.includes(`\n| \`${name}\` | ${value} |`), name)
  }
  assert(page.includes(` | ${retryDelayMsMin}, ${retryDelayMsMax} |`))
  const { pairsMax, bytesMax } = streamDefaults
  assert(page.includes(`${pairsMax.toLocaleString('en')} pushes or ${bytesMax / 2 ** 20} MiB`))
})

test('metrics named in the documentation are on /metrics', async () => {
  const { text } = await metricsPage(
    forEachMetric(() => 0),
    noTimes,
    '1.0.0',
  )
  const known = new Set(text.match(/(?<=^# TYPE )\w+/gm)).add('postbote_client') // the package for Python
  const unknown = pages.flatMap((page) =>
    // Names of files have a version.
    matches(page, /(postbote_\w+)\b(?![.-]\d)/g)
      .filter((name) => !known.has(name))
      .map((name) => `${page}: ${name}`),
  )
  assert.deepEqual(unknown, [])
})

test('log lines named in docs/run/trouble.md are logged', () => {
  const [table = ''] = /\| `msg` \|[\s\S]*?(?:\n\n|$)/.exec(read('docs/run/trouble.md')) ?? []
  const named = [...table.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell = '']) =>
    // The end of a long line is left out.
    [...cell.matchAll(/`([a-z][^`]{9,})`/g)].map(([, line = '']) => line.replace(/: \.{3}$/, '')),
  )
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const source = files.filter((file) => file.endsWith('.ts')).map((file) => read(`src/${file}`))
  // These lines are composed when they are logged.
  const made = /^worker (was ended by|exited with code|did not settle cleanly)/
  assert(named.length > 10)
  const silent = named.filter(
    (line) => !made.test(line) && !source.some((text) => text.includes(line)),
  )
  assert.deepEqual(silent, [])
})

test('each promise of docs/know/guarantees.md names a test that exists', () => {
  const page = read('docs/know/guarantees.md')
  const promises = matches('docs/know/guarantees.md', /^\| (?!failure|---)(.*) \|$/gm)
  assert(promises.length > 25)
  const unproved = promises.filter((row) => !/`test\/[^`]+`: "/.test(row))
  assert.deepEqual(unproved, [])
  const missing = [...page.matchAll(/`(test\/[^`]+)`: "([^"]+)"/g)]
    .filter(([, file = '', name = '']) => !read(file).includes(`test('${name}'`))
    .filter(([, file = '', name = '']) => !read(file).includes(`test("${name}"`))
    .map(([whole]) => whole)
  assert.deepEqual(missing, [])
})

test('docs/reference/limits.md is up to date (npm run docs writes it)', () => {
  assert.equal(read('docs/reference/limits.md'), limitsPage())
})

for (const page of ['docs/know/threat-model.md', 'docs/inside/ledgers.md']) {
  test(`the limits named in ${page} are constants of the sources`, () => {
    const named = matches(page, /`([a-z]+[A-Z]\w*)`/g)
    assert(named.length > 5)
    const constants = constantsOfSources()
    assert.deepEqual(
      named.filter((name) => !constants.has(name)),
      [],
    )
  })
}

test('the table of update types in docs/use/protocol.md matches the code', () => {
  const row = /^\| `(\w+)` \| (yes|no) \| `(\w)` \| (`[^|]+`) \| ([\d,]+) \|$/gm
  const rows = [...read(protocol).matchAll(row)]
  assert.deepEqual(
    rows.map(([, type]) => type),
    updateTypes,
  )
  for (const [nth, [, type = '', isDefault, letter = '', fields = '', ttl]] of rows.entries()) {
    assert.equal(isDefault, isInMask(defaultTypesMask, nth) ? 'yes' : 'no', type)
    const paths = [...fields.matchAll(/`([\w.]+)`/g)].map(([, path = '']) => path)
    const payload: unknown = Object.assign({}, ...paths.map((path, at) => nested(path, at + 7)))
    const text = Buffer.from(JSON.stringify({ [type]: payload }).slice(1, -1))
    const key = letter + paths.map((_path, at) => at + 7).join('/')
    assert.equal(deriveOrderingKey(nth, text), key, type)
    assert.equal(ttl, withCommas(expiresAtS(nth, undefined, 0)), type)
  }
})

test('the table of added types in docs/use/protocol.md matches the code', () => {
  const row = /^\| `(\w+)` \| (?:`([\w.]+)`|none) \| ([\d,]+) \|$/gm
  const section = read(protocol).split('### 7.3')[1] ?? ''
  const rows = [...section.matchAll(row)].map(([, name, keyPath, ttl = '']) => {
    return [name, keyPath, Number(ttl.replace(',', ''))]
  })
  const types: readonly AddedType[] = typesOfReference['10.0']
  assert.deepEqual(
    rows,
    types.map(({ name, keyPath, ttlS = 86_400 }) => [name, keyPath, ttlS]),
  )
})

test('the error texts in docs/use/protocol.md, and every status beside a code, match src/kit/errors.ts', () => {
  const kinds = new Map<string | undefined, { status: number; description: string }>(
    Object.entries(errorKinds),
  )
  const page = read(protocol)
  const texts = [
    ...page.matchAll(/`((?:Unauthorized|Misdirected Request|Not Found|Conflict)(?:: [^`]+)?)`/g),
  ]
  assert(texts.length > 8)
  const descriptions = [...kinds.values()].map(({ description }) => description)
  assert.deepEqual(
    texts
      .map(([, text = '']) => text)
      .filter((text) => !descriptions.some((known) => isDescription(text, known))),
    [],
  )
  const rows = [...page.matchAll(/^\| `([A-Z_]+)` \| (\d{3}) \|/gm)]
  assert(rows.length > 30)
  for (const [, code, status] of rows) assert.equal(Number(status), kinds.get(code)?.status, code)
  for (const [, status, code] of page.matchAll(/\b(\d{3}) `([A-Z]+_[A-Z_]+|UNAUTHORIZED)`/g)) {
    assert.equal(Number(status), kinds.get(code)?.status, code)
  }
})

/** A text may end with particulars. */
function isDescription(text: string, known: string): boolean {
  return text === known || text.startsWith(`${known}: `)
}

test('the delivery shown in docs/use/protocol.md has the length and the signature that its headers say', () => {
  const page = read(protocol)
  const [, head = '', body = ''] = /```http\n([\s\S]*?)\n\n(.*)\n```/.exec(page) ?? []
  const [, secret = ''] = /`whsec_([^`]+)`/.exec(page) ?? []
  const shown = new Map(
    [...head.matchAll(/^([\w-]+): (.*)$/gm)].map(([, name, text]) => [name, text]),
  )
  const [botId = '', updateId] = (shown.get('webhook-id') ?? '').split('-')
  const clock = new FakeClock(Number(shown.get('webhook-timestamp')) * 1_000)
  const keys = [{ id: 'key_x', type: 'hmac-sha256', secret, createdAtMs: 0 }] as const
  const signature = new SignatureHeaders({ idPrefix: `${botId}-`, keys: () => keys }, clock)
  const signed = signature.of(Number(updateId), Buffer.from(body)) ?? []
  assert.equal(signed.length, 6)
  for (let at = 0; at < signed.length; at += 2) assert.equal(shown.get(signed[at]), signed[at + 1])
  assert.equal(shown.get('content-length'), `${Buffer.byteLength(body)}`)
})

test('every update in the documentation, the examples and the sources has the fields that bot frameworks need', () => {
  const updates = documentedUpdates()
  assert(updates.length > 15)
  const incomplete = updates.flatMap(({ file, update }) => {
    const { typeNumber, text } = checkUpdate(JSON.stringify(update))
    try {
      assertTelegramFields(typeNumber, text)
      return []
    } catch (error) {
      return [`${file}: ${String(error)}`]
    }
  })
  assert.deepEqual(incomplete, [])
})

test('every section of the protocol that is cited exists', () => {
  const sections = new Set(matches(protocol, /^#{2,3} (\d+(?:\.\d+)?)\.? /gm))
  assert(sections.size > 50)
  const cited = /§ ?(\d+(?:\.\d+)?)(?:(?:,| and| or) §?(\d+(?:\.\d+)?))?/g
  const missing = citingFiles().flatMap((file) =>
    [...read(file).matchAll(cited)].flatMap(([citation, first = '', second = first]) =>
      sections.has(first) && sections.has(second) ? [] : [`${file}: ${citation}`],
    ),
  )
  assert.deepEqual(missing, [])
})

test('links between pages lead to their headings', () => {
  const links = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g)].map(
      ([, target = '', anchor = '']) => ({
        page,
        target: target === '' ? page : join(dirname(page), target),
        anchor,
      }),
    ),
  )
  assert(links.length > 80)
  const dead = links
    .filter(({ target, anchor }) => target.endsWith('.md') && !anchorsOf(target).has(anchor))
    .map(({ page, target, anchor }) => `${page}: ${target}#${anchor}`)
  assert.deepEqual(dead, [])
})

test('citations of the protocol use its name, and not SPEC', () => {
  const citations = citingFiles().flatMap((file) =>
    read(file)
      .split('\n')
      .flatMap((line, at) => (/\bSPEC[ ,.:;)]/.test(line) ? [`${file}:${at + 1}`] : [])),
  )
  assert.deepEqual(citations, [])
})

test('the slots in docs/inside/storage.md match the code', () => {
  const rows = [...read('docs/inside/storage.md').matchAll(/^\| (\d+) \| (\d+) \|$/gm)]
  assert(rows.length >= 5)
  for (const [, botId, slot] of rows) assert.equal(slotOfBot(Number(botId)), Number(slot))
})

test('docs/use/frameworks.md has a row for each framework in the tests, with its version', () => {
  const rows = [
    ...read('docs/use/frameworks.md').matchAll(/^\| (.+?) \| (.+?) \|(?: .*? \|){5}$/gm),
  ]
  const [head, ...listed] = rows.map(([, name, version]) => ({ name, version }))
  assert.equal(head?.name, 'framework')
  assert.deepEqual(
    listed.map(({ name }) => name),
    frameworks.map(({ name }) => name),
  )
  for (const [nth, { name, version, isOfLockFile }] of frameworks.entries()) {
    if (isOfLockFile) assert.equal(listed[nth]?.version, version, `${name}: npm test, npm run docs`)
  }
})

test('the settings of frameworks in docs/use/frameworks.md are those that the bots in the tests use', () => {
  const folder = 'test/clients/bots'
  const programs = readdirSync(join(root, folder)).map((name) => read(`${folder}/${name}`))
  const settings = /(?<=^\|.*)\b\w+(?=: (?:'|\{|true)| => ')/gm
  const named = [...read('docs/use/frameworks.md').matchAll(settings)].map(([name]) => name)
  assert(named.length > 10)
  const strange = named.filter((name) => !programs.some((text) => text.includes(name)))
  assert.deepEqual(strange, [])
})

test('the numbers of update types, which are on disk, never change', () => {
  assert.equal(updateTypes.length, 22)
  assert.equal(updateTypes.indexOf('message'), 0)
  assert.equal(updateTypes.indexOf('poll'), 15)
  assert.equal(updateTypes.indexOf('message_reaction'), 21)
})

test('the changelog begins with the version of the package or with unreleased changes', () => {
  const { version }: { version: string } = JSON.parse(read('package.json'))
  assert.match(
    read('CHANGELOG.md'),
    new RegExp(
      `^# Changelog\n\n(?:## Unreleased\n\n(?:[- ] .*\n)+\n)?## ${version.replaceAll('.', '\\.')}\n`,
    ),
  )
})

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(page: string): ReadonlySet<string> {
  const headings = matches(page, /^#{1,6} (.*)$/gm).map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  )
  return new Set(headings)
}

function matches(page: string, pattern: RegExp): string[] {
  return [...read(page).matchAll(pattern)].map(([, found = '']) => found)
}

function namesIn(cell: string): string[] {
  return [...cell.matchAll(/`([\w-]+)`/g)].map(([, name = '']) => name)
}

interface Paths {
  readonly paths: Readonly<Record<string, object>>
}

/** A cell of the table of calls: verbs without a path have that of the last one, and `...` is a bot. */
function callsIn(cell: string): string[] {
  const calls = [...cell.matchAll(/`([A-Z]+) ?([^`?]*)/g)]
  const [, , last = ''] = calls.at(-1) ?? []
  return calls.map(([, verb, path = '']) => {
    const whole = (path || last).replace('...', '/v1/bots/:id')
    return `${verb} ${whole.replaceAll(/:(\w+)/g, '{$1}')}`
  })
}

/** What may cite a section of the protocol. */
function citingFiles(): string[] {
  const folders = ['src', 'test', 'bench', 'workers', 'native-bindings', 'scripts', 'docs']
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(
      (file) => `${folder}/${file}`,
    ),
  )
  return files.filter(
    (file) =>
      /\.(?:c|md|pl|py|ts)$|^scripts\/[\w-]+$/.test(file) &&
      !/\/(?:build|node_modules)\//.test(file) &&
      statSync(join(root, file)).isFile(),
  )
}

/** `chat.id` and 7 make `{ chat: { id: 7 } }`. */
function nested(path: string, id: number): unknown {
  return path.split('.').reduceRight<unknown>((value, name) => ({ [name]: value }), id)
}

function withCommas(number: number): string {
  return number.toLocaleString('en')
}
