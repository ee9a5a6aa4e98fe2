/**
 * The error of a shard whose stored data is damaged or missing. Code that finds this while a shard is opened throws it,
 * and the shard is set aside: the server continues without it and names the file on /readyz.
 */

/** What is wrong with one file of a shard. */
export interface FileDamage {
  /** Path of the file, or of the shard's directory if no single file can be named. */
  readonly file: string
  /** Offset in the file, in bytes; undefined if the damage has no position. */
  readonly offset?: number | undefined
  /** What was found, in words for the operator: `block checksum mismatch`, `the file is missing`. */
  readonly reason: string
}

export class ShardDamaged extends Error implements FileDamage {
  readonly file: string
  readonly offset: number | undefined
  readonly reason: string

  constructor({ file, offset, reason }: FileDamage, options: { readonly cause?: unknown } = {}) {
    super(damageText({ file, offset, reason }), options)
    this.name = 'ShardDamaged'
    this.file = file
    this.offset = offset
    this.reason = reason
  }
}

/** Returns the damage as a sentence. */
export function damageText({ file, offset, reason }: FileDamage): string {
  return `${file}${offset === undefined ? '' : `, byte ${offset}`}: ${reason}`
}
