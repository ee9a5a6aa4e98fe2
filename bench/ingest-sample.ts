/** What a helper that pushes, writes or sends updates reports. */
export interface IngestSample {
  readonly operations: number
  readonly seconds: number
}
