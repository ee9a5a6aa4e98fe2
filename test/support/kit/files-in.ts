import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMissing } from '../../../src/store/read-if-there.ts'

/** Returns the paths of all files below a directory. */
export function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

/** Reads all files below a directory, by their paths. A server that runs replaces some meanwhile: then all are read again. */
export function readFilesIn(directory: string): ReadonlyMap<string, Buffer> {
  for (;;) {
    try {
      return new Map(filesIn(directory).map((path) => [path, readFileSync(path)]))
    } catch (error) {
      if (!isMissing(error) || !existsSync(directory)) throw error
    }
  }
}

/** Returns the paths of the files below a directory that have a text. */
export function filesWith(directory: string, text: string): string[] {
  return [...readFilesIn(directory)]
    .filter(([, bytes]) => bytes.includes(text))
    .map(([path]) => path)
}
