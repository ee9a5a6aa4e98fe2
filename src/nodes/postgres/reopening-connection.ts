import type { PgConnection } from './pg-connection.ts'

/** One connection that is opened when it is first needed, and again after it broke or could not be opened. */
export class ReopeningConnection {
  readonly #open: () => Promise<PgConnection>
  #opening: Promise<PgConnection> | undefined

  constructor(open: () => Promise<PgConnection>) {
    this.#open = open
  }

  /** Returns the connection. Rejects with the error of `open`. */
  async get(): Promise<PgConnection> {
    const connection = await this.#opened()
    // Whoever waited for the same connection may have replaced it already.
    return connection.isOpen ? connection : this.#opened()
  }

  close(): void {
    this.#opening?.then(
      (connection) => connection.close(),
      () => undefined,
    )
    this.#opening = undefined
  }

  async #opened(): Promise<PgConnection> {
    const opening = (this.#opening ??= this.#open())
    let connection: PgConnection | undefined
    try {
      connection = await opening
      return connection
    } finally {
      if (connection?.isOpen !== true && this.#opening === opening) this.#opening = undefined
    }
  }
}
