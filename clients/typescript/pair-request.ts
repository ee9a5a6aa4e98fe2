import type { PostboteClientError } from './postbote-client-error.ts'

/** What a stream needs from the requests that it opens one after the other. StreamRequest implements it. */
export interface PairRequest {
  /**
   * Resolves when the request is over: with undefined if the server ended its response normally, otherwise with the reason.
   */
  readonly ended: Promise<PostboteClientError | undefined>
  /** Notifies the request that there is something to take. */
  wake(): void
  /** Ends the request body. The server then sends the results of the pairs it received and ends its response. */
  end(): void
  /** Breaks the request off; `ended` resolves with the reason. */
  destroy(reason: PostboteClientError): void
}

/** What a request calls while it is open. */
export interface PairRequestEvents {
  /** Returns the next piece to send, or undefined if there is none now. */
  take(): string | undefined
  /** Called with the result lines that arrived together, without their line ends. */
  onResults(lines: readonly string[]): void
}
