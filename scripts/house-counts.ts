/**
 * How well the house of src/ is in order, as a table of counts: imports against the order of rooms, features in other rooms, how
 * many files a reader opens. `scripts/house-counts [LAYOUT]...`; a layout is a file with a path and its planned path in each line,
 * with a tab between: everything is then counted as if the files were there. `--static` does without the runs of a server.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { passedFiles } from './passed-files.ts'
import { brokenOrder, importsIn, roomOf } from './rooms.ts'

interface Source {
  /** Where it is, or will be. */
  readonly path: string
  readonly text: string
  readonly imports: readonly string[]
}

interface Count {
  readonly what: string
  /** What is counted, each in a line below the table. */
  readonly found: readonly string[]
}

/** Files in which each feature has a line of its own, and must: codes, names, options, event types, letters of records. */
const registers = /\/(?:errors|metrics|config-options|operator-event|record-keys|kinds)\.ts$/
/** In `links`, a relay is what passes a response on. */
const otherRelays = /response-?relay|#relay\b|relaying/gi
/** Rooms whose files list all features or present them. */
const roomsOfLists = new Set(['features', 'modules'])
/** A file of at most this many lines seldom has an idea of its own. */
const shortLinesMax = 40

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { static: { type: 'boolean', default: false } },
})
const planned = new Map(positionals.flatMap((layout) => pairsIn(readFileSync(layout, 'utf8'))))
const sources = sourcesOf(filesOfGit())
const passed = values.static ? {} : await passedFiles()
const counts = [
  ...countsOf(sources),
  ...Object.entries(passed).map(([way, files]) => ({
    what: `files that a ${way} passes`,
    found: files.map((file) => planned.get(file) ?? file),
  })),
]
const lines = sources.reduce((sum, { text }) => sum + linesOf(text), 0)
process.stdout.write(
  [
    '| what | now |',
    '|---|---:|',
    ...counts.map(({ what, found }) => `| ${what} | ${found.length} |`),
    `| lines of src, in ${sources.length} files | ${lines} |`,
    ...counts.flatMap(({ what, found }) => ['', `## ${what}`, '', ...found]),
    '',
  ].join('\n'),
)

function countsOf(files: readonly Source[]): readonly Count[] {
  const broken = files.flatMap(({ path, imports }) =>
    imports.map((imported) => ({
      line: `${path} imports ${imported}`,
      order: brokenOrder(path, imported),
    })),
  )
  const against = (order: 'rooms' | 'features'): readonly string[] =>
    broken.filter((each) => each.order === order).map(({ line }) => line)
  return [
    { what: 'imports against the order of rooms', found: against('rooms') },
    { what: 'imports between features, but through needs.ts', found: against('features') },
    {
      what: 'files of the core that name relay',
      found: pathsOf(
        files,
        ({ path, text }) => isOfCore(path) && /relay/i.test(text.replaceAll(otherRelays, '')),
      ),
    },
    {
      what: 'option bags (interfaces XOptions)',
      found: namesIn(files, /interface (\w+Options)\b/g),
    },
    {
      what: `files of at most ${shortLinesMax} lines`,
      found: pathsOf(files, ({ text }) => linesOf(text) <= shortLinesMax),
    },
    { what: 'assertions', found: namesIn(files, /^ *(assert(?:\.\w+)?\(.*)/gm) },
  ]
}

/** Whether a file is part of what runs without any feature. */
function isOfCore(path: string): boolean {
  const room = roomOf(path)
  return room !== undefined && !roomsOfLists.has(room) && !registers.test(path)
}

function pathsOf(
  files: readonly Source[],
  isCounted: (source: Source) => boolean,
): readonly string[] {
  return files.filter(isCounted).map(({ path }) => path)
}

function namesIn(files: readonly Source[], pattern: RegExp): readonly string[] {
  return files.flatMap(({ path, text }) =>
    Array.from(text.matchAll(pattern), ([, name = '']) => `${path}: ${name}`),
  )
}

function sourcesOf(paths: readonly string[]): readonly Source[] {
  return paths.map((now) => {
    const text = readFileSync(now, 'utf8')
    const imports = importsIn(now, text).map((imported) => planned.get(imported) ?? imported)
    return { path: planned.get(now) ?? now, text, imports }
  })
}

function filesOfGit(): readonly string[] {
  return execFileSync('git', ['ls-files', 'src/*.ts'], { encoding: 'utf8' }).trim().split('\n')
}

function pairsIn(layout: string): readonly (readonly [string, string])[] {
  return layout
    .split('\n')
    .map((line) => line.split('\t'))
    .flatMap(([now, then]) => (now && then ? [[now, then] as const] : []))
}

function linesOf(text: string): number {
  return text.split('\n').length - 1
}
