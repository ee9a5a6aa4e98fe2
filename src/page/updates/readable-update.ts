/** Returns an update with a line for each field; as it is if that would change it, as of a large number. Pure. */
export function readableUpdate(text: string): string {
  const update: unknown = JSON.parse(text)
  return JSON.stringify(update) === text ? JSON.stringify(update, undefined, 2) : text
}
