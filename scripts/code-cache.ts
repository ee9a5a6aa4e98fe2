/**
 * The code cache of a bundle: what V8 has compiled of it at the build, so that a start need not. It lies beside the bundle, and
 * nothing is written at run time.
 *
 *     head     a line: version and processor of Node.js, and a checksum of both the source and the data
 *     data     of V8, which itself checks its version and its flags, but neither the text of the source nor the processor
 *
 * A cache that does not fit, for whatever reason, is as good as none: the bundle is compiled as it always was.
 */
import { existsSync, readFileSync } from 'node:fs'
import { constants, Script } from 'node:vm'
import { crc32 } from 'node:zlib'

/** What the script of a bundle evaluates to. The last one is for the exports, which nobody reads. */
export type BundleFunction = (require: NodeJS.Require, url: string, module: object) => void

/** @param bundle - the path of a bundle without its ending */
export function bundleScript(bundle: string): Script {
  const source = readFileSync(`${bundle}.cjs`)
  const cachedData = cacheOf(bundle, source)
  return new Script(source.toString('latin1'), {
    filename: `${bundle}.cjs`,
    ...(cachedData === undefined ? {} : { cachedData }),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
}

/** Returns the content of the file that the cache of a bundle is kept in. */
export function sealedCache(source: Buffer, data: Buffer): Buffer {
  return Buffer.concat([headOf(source, data), data])
}

function cacheOf(bundle: string, source: Buffer): Buffer | undefined {
  let file: Buffer
  try {
    // Most who miss it have none, and an error costs more than this.
    if (!existsSync(`${bundle}.cache`)) return undefined
    file = readFileSync(`${bundle}.cache`)
  } catch {
    return undefined
  }
  const data = file.subarray(file.indexOf('\n') + 1)
  return file.subarray(0, -data.length).equals(headOf(source, data)) ? data : undefined
}

function headOf(source: Buffer, data: Buffer): Buffer {
  const sum = crc32(data, crc32(source)).toString(16)
  return Buffer.from(`${process.version} ${process.arch} ${sum}\n`)
}
