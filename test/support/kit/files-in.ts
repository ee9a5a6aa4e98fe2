import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Returns the paths of all files below a directory. */
export function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}
