/** Reads files and directories that may be missing, which is no error. */
import { access, readdir, readFile } from 'node:fs/promises'

/** Returns whether an error of the file system says that there is nothing at the path. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

/** Reads a file. Returns undefined if it is not there. */
export async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** Returns whether there is something at a path. Rejects if that cannot be determined, as on a failing disk. */
export async function exists(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

/** Lists the names in a directory that are numbers, in ascending order. A missing directory has none. */
export async function numbersIn(directory: string): Promise<readonly number[]> {
  try {
    const names = (await readdir(directory)).filter((name) => /^\d+$/.test(name))
    return names.map(Number).toSorted((left, right) => left - right)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}
