/** Whether there is something at a path. Rejects where that cannot be told, as on a disk that fails. */
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
