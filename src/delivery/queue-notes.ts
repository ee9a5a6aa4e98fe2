/**
 * What a bot gets wrong in silence, because the server answers as the reference does: a method that is not served, a type
 * of update that does not exist, a parameter that is ignored. Its health says so. The notes are in memory, as long as the
 * queue is.
 */

/** What a note is about. A queue has one note about each. */
export type NoteSubject =
  | 'method'
  | 'allowed_updates'
  | 'getUpdates'
  | 'setWebhook'
  | 'deleteWebhook'

/** The notes of one queue. */
export class QueueNotes {
  /** Undefined for most queues. */
  #texts: Map<NoteSubject, string> | undefined
  #unserved = 0

  /** All of them. */
  get texts(): readonly string[] {
    return this.#texts === undefined ? [] : [...this.#texts.values()]
  }

  /**
   * Replaces the note about a subject.
   *
   * @param text - undefined if there is nothing wrong any more
   * @returns whether that is new
   */
  set(about: NoteSubject, text: string | undefined): boolean {
    if (this.#texts?.get(about) === text) return false
    if (text === undefined) return this.#texts?.delete(about) === true
    this.#texts ??= new Map()
    this.#texts.set(about, text)
    return true
  }

  /** Notes a call of a method that this server does not have. */
  unserved(method: string): void {
    this.#unserved += 1
    const times = this.#unserved === 1 ? 'once' : `${this.#unserved} times`
    this.set('method', `methods that are not served here were called ${times}, last ${method}`)
  }
}
