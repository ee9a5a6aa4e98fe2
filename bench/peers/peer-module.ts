/** The clients of other queues are installed in a directory of their own, so that Postbote does not depend on them. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/** This file is compiled into dist/bench/peers. */
const directory = new URL('../../../bench/peers/', import.meta.url)
const requireThere = createRequire(new URL('package.json', directory))

/** Loads a package. The caller describes the part of it that it uses. */
// oxlint-disable-next-line no-unnecessary-type-parameters -- so that a caller names the type
export function peerModule<Module>(name: string): Module {
  // oxlint-disable-next-line no-unsafe-type-assertion -- the lock file pins the version
  return requireThere(name) as Module
}

export function isPeerModuleInstalled(name: string): boolean {
  return existsSync(fileURLToPath(new URL(`node_modules/${name}/package.json`, directory)))
}
