/** Returns whether there is something at a path. Rejects if that cannot be determined, as on a failing disk. */
import { access } from 'node:fs/promises'
import { isMissing } from './is-missing.ts'

export async function exists(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}
