import { element } from './element.ts'

/** How long something old may stay valid beside the new one, in seconds: as long as the server allows. */
const overlaps = [
  [0, 'not at all'],
  [3_600, 'for an hour'],
  [86_400, 'for a day'],
  [604_800, 'for a week'],
] as const

/** A choice of how long something old stays valid. */
export interface OverlapField {
  readonly root: HTMLElement
  readonly seconds: () => number
}

/** @param label - what stays valid */
export function overlapField(label: string): OverlapField {
  const options = overlaps.map(([value, text]) => element('option', { value }, text))
  const select = element('select', {}, ...options)
  return { root: element('label', {}, label, select), seconds: () => Number(select.value) }
}
