import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Returns the paths of all files below a folder. Each begins with that of the folder. */
export function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}
