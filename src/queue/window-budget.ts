/** Bytes of loaded updates in all windows of a worker, against what it may hold. */
export class WindowBudget {
  readonly bytesMax: number
  #usedBytes = 0

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  /** Past this, new updates stay on disk until they are asked for. */
  get isSpent(): boolean {
    return this.#usedBytes >= this.bytesMax
  }

  add(bytes: number): void {
    this.#usedBytes += bytes
  }
}
