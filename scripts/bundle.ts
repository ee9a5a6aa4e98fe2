/**
 * Replaces the compiled entry files of processes and threads with bundles: a worker that loads a bundle starts in half
 * the CPU time that several hundred files take (docs/inside/decisions.md). Bundles are not minified, so that stack traces name
 * functions, and the bundle names the source file above each part. The worker of the tests of processes, and the program that
 * tests run in their process, are bundled for the same reason. Then bundles the dashboard into dist/dashboard/.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type BuildOptions } from 'esbuild'
import { workerFlags } from '../src/process/primary/worker-child.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const workers = readdirSync(`${root}workers`).map((name) => `workers/${basename(name, '.ts')}`)
/**
 * The large ones, which each start loads: scripts, since Node.js 20 takes no code cache for modules. With the arguments with which
 * their code cache is made, and the flags of V8 that their process has.
 */
const cached = [
  { name: 'src/program', flags: [], argv: ['--version'] },
  { name: 'workers/cluster-worker', flags: workerFlags, argv: [] },
]
const isCached = (name: string): boolean => cached.some((each) => each.name === name)

const options = {
  absWorkingDir: root,
  outdir: 'dist',
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  // Packages that load files of their own by path.
  external: ['leveldown', 'piscina', 'pg-native'],
  sourcemap: 'linked',
  sourcesContent: false,
  legalComments: 'eof',
  logLevel: 'warning',
} as const satisfies BuildOptions

await build({
  ...options,
  entryPoints: [
    ...['src/main', ...workers]
      .filter((name) => !isCached(name))
      .map((name) => ({ in: `${name}.ts`, out: name })),
    ...cached.map(({ name }) => ({ in: 'scripts/run-bundle.ts', out: name })),
    // One folder below dist/, as entry-files.ts says.
    { in: 'test/cluster/test-worker.ts', out: 'test/test-worker' },
    { in: 'test/support/programs/program-in-process.ts', out: 'test/program-in-process' },
  ],
  format: 'esm',
  // CommonJS packages in the bundle require modules of Node.js.
  banner: {
    js: "import { createRequire as createBundleRequire } from 'node:module'\nconst require = createBundleRequire(import.meta.url)",
  },
})
await build({
  ...options,
  entryPoints: cached.map(({ name }) => ({ in: `${name}.ts`, out: name })),
  outExtension: { '.js': '.cjs' },
  format: 'cjs',
  // undici asks whether Node.js has a class of this name, too. The answer would load a second undici: 7 % of the start of a worker.
  define: { 'import.meta.url': 'bundleUrl', 'globalThis.Headers': 'undefined' },
  banner: { js: '(function (require, bundleUrl, module) {' },
  footer: { js: '})' },
})

// A source with a single character that is not Latin-1 takes two bytes for each in memory: 4.5 MB more in each worker. In
// bundles, only comments and regular expressions have such characters, where the escape means the same. ASCII is read fastest.
for (const name of ['src/program', ...workers]) {
  const path = `${root}dist/${name}.${isCached(name) ? 'cjs' : 'js'}`
  writeFileSync(path, readFileSync(path, 'utf8').replace(/[^\0-\x7f]/g, escaped))
}
for (const { name, flags, argv } of cached) {
  const path = `${root}dist/${name}`
  rmSync(`${path}.cache`, { force: true })
  const maker = `${root}dist/scripts/make-code-cache.js`
  execFileSync(process.execPath, [...flags, maker, path, ...argv], { stdio: 'ignore' })
}

// The dashboard and the owner's page run in browsers: one program and one style each, as small as they get.
const browsers = ['chrome109', 'firefox115', 'safari16']
await build({
  absWorkingDir: root,
  entryPoints: [
    { in: 'src/page/frame/dashboard-app.ts', out: 'app' },
    { in: 'src/page/frame/first-paint.ts', out: 'first-paint' },
    { in: 'src/page/portal/portal-app.ts', out: 'portal' },
  ],
  outdir: 'dist/dashboard',
  bundle: true,
  minify: true,
  platform: 'browser',
  target: browsers,
  format: 'esm',
  legalComments: 'none',
  logLevel: 'warning',
})
await build({
  absWorkingDir: root,
  entryPoints: [
    { in: 'src/page/page.css', out: 'app' },
    { in: 'src/page/portal.css', out: 'portal' },
  ],
  outdir: 'dist/dashboard',
  bundle: true,
  minify: true,
  // Blocks in blocks are taken apart for those that do not know them.
  target: browsers,
  logLevel: 'warning',
})
copyFileSync(`${root}src/page/page.html`, `${root}dist/dashboard/index.html`)
copyFileSync(`${root}src/page/portal.html`, `${root}dist/dashboard/portal.html`)

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
