import type { ServerResponse } from 'node:http'

/** Passes the parts of a response on to its client, no faster than the client reads. */
export class ResponseRelay {
  readonly #response: ServerResponse
  #isWaiting = false

  constructor(response: ServerResponse) {
    this.#response = response
  }

  /** Returns false if the sender should wait until `drained` is called. */
  write(bytes: Buffer, drained: () => void): boolean {
    if (this.#response.write(bytes)) return true
    if (this.#isWaiting) return false
    this.#isWaiting = true
    this.#response.once('drain', () => {
      this.#isWaiting = false
      drained()
    })
    return false
  }
}
