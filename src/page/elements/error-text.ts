/** Returns what went wrong, for the reader of the page. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
