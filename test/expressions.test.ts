/** A rule about regular expressions that neither the compiler nor the linter checks: what one costs grows as the text it sees. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { costlyKindsOf } from './support/text/expression-costs.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Expressions that look costly and are not, each with the reason. Better than a row here is an expression that needs none. */
const allowed: ReadonlyMap<string, string> = new Map([
  [
    String.raw`src/bot-api/get-updates.ts /(?:^|[\s,])(?:gzip|\*)(?:\s*;\s*q=([\d.]+))?/i`,
    'the blanks follow a name, and end before the next one',
  ],
  [
    String.raw`src/config/config.ts /\/\/[^/\s]*@/g`,
    'each run begins after two slashes and ends at the next one; only the operator sets options',
  ],
  [
    String.raw`src/http/multipart.ts /;\s*boundary\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i`,
    'each part begins after a semicolon or a quotation mark, and ends before the next one',
  ],
  [
    String.raw`src/delivery/endpoint/connection.ts /chunked\s*$/i`,
    'the blanks follow a word, and end before the next one',
  ],
  [
    'src/delivery/endpoint/trust-roots.ts /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g',
    'a run begins after a dash and ends at the next one',
  ],
  [
    String.raw`src/cli/commands/commands-page.ts /, (\S+)$/`,
    'a run begins after a blank and ends at the next one; only names of commands',
  ],
  [
    String.raw`src/access/private-api-guard.ts /:\d*$/`,
    'a run begins after a colon and ends at the next one',
  ],
  [
    String.raw`src/store/level/damage-of.ts /\/(\d+\.(?:ldb|sst|log)|MANIFEST-\d+|CURRENT|LOG|LOCK)\b/`,
    'a run begins after a slash or a dash and ends at the next one',
  ],
  [
    String.raw`src/page/updates/readable-update.ts /\s*("(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[{}[\],:]|[^\s{}[\],:"]+)\s*/gsu`,
    'each token takes the white space after it; only JSON that the server has stored',
  ],
  [
    String.raw`src/page/updates/whose-updates.ts /^(?:[a-z_]+\.)*(chat|from|user)\.id=(.*)$/`,
    'each run ends at a dot; only what a reader types',
  ],
  [
    String.raw`clients/conformance/driver.ts /VmHWM:\s+(\d+) kB/`,
    'each run begins after a colon or a blank; only what the kernel says',
  ],
])

/** Files that compile expressions from texts, and why no stranger chooses them. */
const compiling: ReadonlyMap<string, string> = new Map([
  ['src/kit/added-type.ts', 'anchored, of a fixed name'],
  ['src/features/fleet/fleet-rows.ts', 'anchored, with a bound'],
  ['src/bots/registry.ts', 'anchored: the pattern of tokens'],
  ['src/api/token.ts', 'anchored, with a bound'],
  ['src/cli/remote/peer-user.ts', 'of an inode: what the kernel lists'],
  ['src/api/update-options.ts', 'anchored, with a bound'],
  ['src/features/bots/read-bot-change.ts', 'anchored: schemas of operations, and names of headers'],
])

/** A literal stands where a value can begin, and its end is no division either. */
const literal =
  /(?<=(?:^|[(,=:[!&|?{};>]|return)\s*)\/(?![*/])((?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+)\/([dgimsuvy]*)(?=[\s.,;)\]}]|$)/gm

const sources = ['src', 'workers', 'clients']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(
      (file) => `${folder}/${file}`,
    ),
  )
  .filter((file) => /\.(?:ts|js|mjs|cjs)$/.test(file) && !/node_modules|\bdist\b/.test(file))

test('no expression that ships may cost more than its text is long, or it says why it does not', () => {
  const found: string[] = []
  let count = 0
  for (const file of sources) {
    for (const [, source = '', flags = ''] of read(file).matchAll(literal)) {
      count += 1
      if (costlyKindsOf(source, flags).length > 0) found.push(`${file} /${source}/${flags}`)
    }
  }
  assert(count > 200, `only ${count} expressions were found`)
  assert.deepEqual(found.toSorted(), [...allowed.keys()].toSorted())
})

test('only known files of the server compile expressions from texts', () => {
  const found = sources.filter(
    (file) => !file.startsWith('clients/') && /new RegExp\(/.test(read(file)),
  )
  assert.deepEqual(found.toSorted(), [...compiling.keys()].toSorted())
})

test('the rule knows what is costly, and what is not', () => {
  const kinds: Readonly<Record<string, readonly string[]>> = {
    [String.raw`\d+(?::|%3a)[\w-]{30,}`]: ['late'],
    '=+$': ['late'],
    'a(?:b|c*d)': ['late'],
    '(?:x|y+)z': ['late'],
    [String.raw`^a\s*\s*$`]: ['neighbors'],
    [String.raw`^\w*-?\d+$`]: ['neighbors'],
    '^(?:a+)*$': ['nested'],
    '^(?:ab*,)*$': ['nested'],
    [String.raw`^\s*;\s*$`]: [],
    '(?<!=)=+$': [],
    'a{1,8}b': [],
    '[^*+]b': [],
    'ab+': [],
    '^a+b+$': [],
  }
  for (const [source, expected] of Object.entries(kinds)) {
    assert.deepEqual(costlyKindsOf(source, ''), expected, source)
  }
})

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}
