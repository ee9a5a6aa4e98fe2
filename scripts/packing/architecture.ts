/** The processors for which a release has programs. Node.js and Debian name them differently. */
export interface Architecture {
  /** `process.arch`, and the end of the name of npm's package of Node.js. */
  readonly node: 'x64' | 'arm64'
  /** Containers use Debian's name, too. */
  readonly debian: 'amd64' | 'arm64'
}

export const architectures: readonly Architecture[] = [
  { node: 'x64', debian: 'amd64' },
  { node: 'arm64', debian: 'arm64' },
]
