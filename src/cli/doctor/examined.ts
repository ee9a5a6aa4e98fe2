import type { Finding } from '../../store/postgres/finding.ts'

/** What was found out about the machine or about one database. */
export interface Examined {
  /** The lines before the findings. */
  readonly heading: readonly string[]
  readonly findings: readonly Finding[]
}
