/**
 * Returns the update in the response of a call that shows one, as it was pushed: parsing could change a large number. It is the
 * last field of the response. Pure.
 */
export function updateIn(response: string): string {
  const mark = ',"update":'
  return response.slice(response.indexOf(mark) + mark.length, -1)
}
