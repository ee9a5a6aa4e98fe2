/**
 * Reads the secrets that sign events, at a start and at a reload. Workers get them from the primary, so that a worker that
 * was killed is started again even if the file is gone by then.
 */
import { readFileSync } from 'node:fs'
import type { Config } from '../../config/config.ts'

/** The form of Standard Webhooks. */
export const secretPrefix = 'whsec_'

/** A file of `--events-secret-file` has at most this many secrets: the new one and an old one, with room for a mistake. */
const eventSecretsMax = 4

/**
 * Returns the secrets of `--events-secret-file`, in the order of the file.
 *
 * @returns no secrets without that option
 * @throws Error, with a message for the operator, if the secrets cannot be used
 */
export function readEventSecrets({
  eventsSecretFile: file,
}: Pick<Config, 'eventsSecretFile'>): readonly string[] {
  if (file === undefined) return []
  const secrets = textOf(file)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  if (secrets.length === 0 || secrets.length > eventSecretsMax || !secrets.every(isSecret)) {
    throw new Error(
      `expected 1 to ${eventSecretsMax} lines in ${file}, each with whsec_ and the base64 text of 24 to 64 bytes`,
    )
  }
  return secrets
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Error(`cannot read the secrets of --events-secret-file from ${file}`, {
      cause: error,
    })
  }
}

function isSecret(line: string): boolean {
  if (!/^whsec_[A-Za-z0-9+/]+={0,2}$/.test(line)) return false
  const { length } = Buffer.from(line.slice(secretPrefix.length), 'base64')
  return length >= 24 && length <= 64
}
