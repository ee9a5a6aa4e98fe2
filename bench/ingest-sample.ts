/** What a helper that pushes or writes updates reports. */
export interface IngestSample {
  readonly operations: number
  readonly seconds: number
}
