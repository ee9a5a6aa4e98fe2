/** Reads a file. Returns undefined if it is not there. */
import { readFile } from 'node:fs/promises'
import { isMissing } from './is-missing.ts'

export async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}
