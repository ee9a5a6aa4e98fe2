/** The report of a helper that pushes, writes or sends updates. */
export interface IngestSample {
  readonly operations: number
  readonly seconds: number
}
