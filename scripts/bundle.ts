/**
 * Replaces the compiled entry files of processes and threads with bundles: a worker that loads a bundle starts in half
 * the CPU time that several hundred files take (docs/design.md). Bundles are not minified, so that stack traces name
 * functions, and the bundle names the source file above each part. Then bundles the dashboard into dist/dashboard/.
 */
import { copyFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('../../', import.meta.url))
const workers = readdirSync(`${root}workers`).map((name) => `workers/${name}`)

await build({
  absWorkingDir: root,
  entryPoints: ['src/main.ts', ...workers],
  outdir: 'dist',
  outbase: '.',
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'esm',
  // Packages that load files of their own by path.
  external: ['leveldown', 'piscina', 'pg-native'],
  // CommonJS packages in the bundle require modules of Node.js.
  banner: {
    js: "import { createRequire as createBundleRequire } from 'node:module'\nconst require = createBundleRequire(import.meta.url)",
  },
  sourcemap: 'linked',
  sourcesContent: false,
  legalComments: 'eof',
  logLevel: 'warning',
})

// The dashboard runs in browsers: one program and one style, as small as they get.
await build({
  absWorkingDir: root,
  entryPoints: [{ in: 'src/dashboard/dashboard-app.ts', out: 'app' }],
  outdir: 'dist/dashboard',
  bundle: true,
  minify: true,
  platform: 'browser',
  target: ['chrome109', 'firefox115', 'safari16'],
  format: 'esm',
  legalComments: 'none',
  logLevel: 'warning',
})
await build({
  absWorkingDir: root,
  entryPoints: [{ in: 'src/dashboard/page.css', out: 'app' }],
  outdir: 'dist/dashboard',
  bundle: true,
  minify: true,
  logLevel: 'warning',
})
copyFileSync(`${root}src/dashboard/page.html`, `${root}dist/dashboard/index.html`)
