/** Another process owns the shard: it cannot be opened here. */
export class NotOwnerError extends Error {
  constructor(shard: number, owner: string) {
    super(`shard ${shard} belongs to ${owner}`)
    this.name = 'NotOwnerError'
  }
}
