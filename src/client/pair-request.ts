import type { PostboteClientError } from './postbote-client-error.ts'

/** What a stream wants of the requests it opens one after the other; see StreamRequest. */
export interface PairRequest {
  /** Resolves when it is over: with undefined where the server ended its answer in order, else with the reason. */
  readonly ended: Promise<PostboteClientError | undefined>
  /** There is something to take. */
  wake(): void
  /** Nothing more will come: the server answers what it has got and ends its answer. */
  end(): void
  /** Breaks it off; `ended` resolves with the reason. */
  destroy(reason: PostboteClientError): void
}

export interface PairRequestEvents {
  /** The next piece to send; undefined where there is none now. */
  take(): string | undefined
  /** Lines that came together, without their ends. */
  onResults(lines: readonly string[]): void
}
