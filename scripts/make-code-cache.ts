/**
 * Writes the code cache of a bundle: `node dist/scripts/make-code-cache.js BUNDLE [ARGUMENT...]`, BUNDLE being its path without
 * its ending. The bundle is run until it first waits, because V8 compiles functions when they are called, and
 * a cache has those that were compiled. Run this with the V8 flags that the process has.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { type BundleFunction, bundleScript, sealedCache } from './code-cache.ts'

const [bundle = ''] = process.argv.splice(2, 1)
const { href } = pathToFileURL(`${bundle}.js`)
const script = bundleScript(bundle)
const run: BundleFunction = script.runInThisContext()
run(createRequire(href), href, {})
const source = readFileSync(`${bundle}.cjs`)
writeFileSync(`${bundle}.cache`, sealedCache(source, script.createCachedData()))
process.exit()
