/** Tells whoever waits for a shard that another node has it now, or that it is served here. */
export class ShardNews {
  /** By shard. */
  readonly #watchers = new Map<number, Set<() => void>>()

  /** Calls `onNews` whenever there is news of the shard, until the returned function is called. */
  watch(shard: number, onNews: () => void): () => void {
    const watchers = this.#watchers.get(shard) ?? new Set()
    this.#watchers.set(shard, watchers.add(onNews))
    return () => {
      watchers.delete(onNews)
      if (watchers.size === 0 && this.#watchers.get(shard) === watchers)
        this.#watchers.delete(shard)
    }
  }

  tell(shard: number): void {
    for (const onNews of this.#watchers.get(shard) ?? []) onNews()
  }
}
