/**
 * Returns the update in the response of a call that shows one, or in an event of a tail, as it was pushed: parsing could change
 * a large number. It is the last field. Returns '' if there is none. Pure.
 */
export function updateIn(response: string): string {
  const at = response.indexOf(mark)
  return at < 0 ? '' : response.slice(at + mark.length, -1)
}

const mark = ',"update":'
