/** Lists the names in a directory that are numbers, in ascending order. A missing directory has none. */
import { readdir } from 'node:fs/promises'
import { isMissing } from './is-missing.ts'

export async function numbersIn(directory: string): Promise<readonly number[]> {
  try {
    const names = (await readdir(directory)).filter((name) => /^\d+$/.test(name))
    return names.map(Number).toSorted((left, right) => left - right)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}
