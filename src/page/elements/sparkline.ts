/** A curve as small as a word: how a number has changed since the page watches it. */
import type { PagePart } from './page-part.ts'
import { sparkHeight, sparkPath, sparkWidth } from './chart-formats.ts'

const svgNamespace = 'http://www.w3.org/2000/svg'

/** Chosen: as many points as the curve has pixels that the eye can tell apart. */
export const sparkPointsMax = 48

/** Makes a curve of the values that it is shown, oldest first. */
export function sparkline(): PagePart<readonly number[]> {
  const root = document.createElementNS(svgNamespace, 'svg')
  const under = document.createElementNS(svgNamespace, 'path')
  const line = document.createElementNS(svgNamespace, 'path')
  root.setAttribute('viewBox', `0 0 ${sparkWidth} ${sparkHeight}`)
  root.setAttribute('class', 'spark')
  root.setAttribute('aria-hidden', 'true')
  under.setAttribute('class', 'under')
  root.append(under, line)
  const show = (values: readonly number[]): void => {
    const path = sparkPath(values)
    line.setAttribute('d', path)
    under.setAttribute('d', path === '' ? '' : `${path} V${sparkHeight} H0 Z`)
  }
  // An element of a picture is no HTMLElement, and a part has one.
  const frame = document.createElement('span')
  frame.append(root)
  return { root: frame, show }
}
