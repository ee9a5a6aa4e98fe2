/** What the build puts in the place of an entry file: it runs the bundle beside it, with the code cache if that fits. */
import '../src/cli/serve/refuse-inspector.ts'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { type BundleFunction, bundleScript } from './code-cache.ts'

const { url } = import.meta
const run: BundleFunction = bundleScript(fileURLToPath(url).replace(/\.js$/, '')).runInThisContext()
run(createRequire(url), url, {})
