/** Counts the bytes of loaded updates in all windows of a worker against their limit. */
export class WindowBudget {
  readonly bytesMax: number
  #usedBytes = 0

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  /** Once the budget is spent, new updates stay on disk until they are read. */
  get isSpent(): boolean {
    return this.#usedBytes >= this.bytesMax
  }

  add(bytes: number): void {
    this.#usedBytes += bytes
  }
}
