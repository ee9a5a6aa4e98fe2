/** The size of a curve in pixels. */
export const sparkWidth = 96
export const sparkHeight = 28

/** Returns the path of a curve, which begins at the left edge and ends at the right one. One value is a level line. */
export function sparkPath(values: readonly number[]): string {
  const [first] = values
  if (first === undefined) return ''
  const points = values.length === 1 ? [first, first] : values
  const high = Math.max(...points, 1)
  return points
    .map((value, nth) => {
      const x = (nth / (points.length - 1)) * sparkWidth
      const y = sparkHeight - 1 - (value / high) * (sparkHeight - 3)
      return `${nth === 0 ? 'M' : 'L'}${round(x)} ${round(y)}`
    })
    .join(' ')
}

function round(pixels: number): number {
  return Math.round(pixels * 10) / 10
}
