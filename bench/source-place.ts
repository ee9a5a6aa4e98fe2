/**
 * Where a function of a profile comes from, without any path of the machine: the file within the project, the file within
 * its package, or a module of Node. Worker threads and processes run bundles, so the profile names lines of a bundle;
 * `inSources` looks them up in the bundle's source map.
 */
import { existsSync, readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { basename } from 'node:path'
import type { CallFrame, CpuProfile } from './inspected-process.ts'

export interface SourcePlace {
  /** `native` is V8, libuv, the kernel and addons, which have no file. */
  readonly kind: 'ours' | 'package' | 'node' | 'native'
  /** Such as `src/queue/window/window.ts`, `undici/lib/core/util.js` or `node:net`; empty if native. */
  readonly file: string
}

const ownFile = /^.*\/((?:src|workers|native-bindings)\/.+)$/
const packageFile = /^.*\/node_modules\/(.+)$/

/** Returns the place of a frame's URL, as the inspector reports it or as `inSources` found it. */
export function sourcePlace(url: string): SourcePlace {
  if (url === '') return { kind: 'native', file: '' }
  if (url.startsWith('node:')) return { kind: 'node', file: url }
  const [, inPackage] = packageFile.exec(url) ?? []
  if (inPackage !== undefined) return { kind: 'package', file: inPackage }
  const [, own] = ownFile.exec(url) ?? []
  return own === undefined ? { kind: 'package', file: basename(url) } : { kind: 'ours', file: own }
}

/** Returns the same profile with the frames of bundles replaced by those of their source files. */
export function inSources(
  profile: CpuProfile,
  mapOf: (url: string) => SourceMap | undefined = linkedMap,
): CpuProfile {
  const nodes = profile.nodes.map((node) => ({
    ...node,
    callFrame: inSource(node.callFrame, mapOf),
  }))
  return { ...profile, nodes }
}

function inSource(frame: CallFrame, mapOf: (url: string) => SourceMap | undefined): CallFrame {
  const { url, lineNumber, columnNumber = 0 } = frame
  if (!url.startsWith('file:')) return frame
  const entry = mapOf(url)?.findEntry(lineNumber, columnNumber)
  if (entry === undefined || !('originalSource' in entry)) return frame
  const source = new URL(entry.originalSource, url).href
  return { ...frame, url: source, lineNumber: entry.originalLine }
}

const maps = new Map<string, SourceMap | undefined>()

/** The map beside a file, if it has one. */
function linkedMap(url: string): SourceMap | undefined {
  if (!maps.has(url)) {
    const file = new URL(`${url}.map`)
    const map = existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8'))) : undefined
    maps.set(url, map)
  }
  return maps.get(url)
}
