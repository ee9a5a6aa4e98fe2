/** Replaces small files atomically: after a crash or a power loss, a file has its old or its new contents. */
import { mkdir, open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'

export async function writeFileAtomically(
  path: string,
  contents: string | Buffer,
  mode: number,
): Promise<void> {
  const temporary = `${path}.tmp`
  const file = await open(temporary, 'w', mode)
  try {
    // The umask narrows the mode passed to `open`, and `open` ignores it if a crash left the file there.
    await file.chmod(mode)
    await file.writeFile(contents)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
  await syncDirectory(dirname(path))
}

/** Makes the contents of a file durable; `w` creates an empty one. */
export async function syncFile(path: string, flags: 'r+' | 'w'): Promise<void> {
  const file = await open(path, flags, 0o600)
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Makes names that were created in a directory, or removed from it, durable. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

/** Creates a directory that only its owner may enter, and its parents, durably. */
export async function makePrivateDirectory(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  for (let made = path; made.length >= first.length; made = dirname(made)) {
    await syncDirectory(dirname(made))
  }
}
