interface ModelUpdate {
  readonly id: number
  readonly text: string
  readonly acceptedAtS: number
  readonly expiresAtS: number
}

/** The queue as protocol.md §4 describes it. */
export class Model {
  updates: ModelUpdate[] = []
  nextId = 0

  get oldestId(): number {
    return this.updates[0]?.id ?? this.nextId
  }

  resolve(offset: number): number {
    if (offset < 0)
      return this.updates.at(Math.max(offset, -this.updates.length))?.id ?? this.nextId
    const isFar = offset > this.nextId || offset < this.oldestId - 100_000
    return offset === 0 || isFar ? this.oldestId : offset
  }

  removeBelow(id: number): void {
    this.updates = this.updates.filter((update) => update.id >= id)
  }
}
