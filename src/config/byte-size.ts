/** Sizes, as people give them to options: `1024`, `64K`, `64M`, `1G`, `1.5 GiB`. */
import { gib, kib, mib } from '../kit/limits.ts'
import { choiceOf } from '../kit/text/counted.ts'
import { type Kind, refused } from './config-values.ts'

/** From the largest, for the text of a size. */
const units = [
  ['T', 1_024 * gib],
  ['G', gib],
  ['M', mib],
  ['K', kib],
  ['B', 1],
] as const

/** Those within the bounds of a kind say how its values are written. */
const examples = [kib, 64 * mib, gib]

interface Bounds {
  readonly min?: number
  readonly max: number
  /** That of a number alone, which some options have from the start. */
  readonly unit?: (typeof units)[number][0]
}

/** A size in bytes, from one to the other. */
export function byteSize({ min = 0, max, unit = 'B' }: Bounds): Kind<number> {
  const alone = unit === 'B' ? '' : `, in ${unit}iB without a unit`
  const such = examples.filter((bytes) => bytes >= min && bytes <= max).map(sizeText)
  return {
    expected: `a size from ${sizeText(min)} to ${sizeText(max)}, such as ${choiceOf(such)}${alone}`,
    placeholder: 'SIZE',
    parse(text) {
      const bytes = bytesOf(text, unit)
      return bytes !== undefined && bytes >= min && bytes <= max ? bytes : refused
    },
    shortest: (text) => sizeText(bytesOf(text, unit) ?? 0),
  }
}

/** A part of a byte is none. */
function bytesOf(text: string, usual: string): number | undefined {
  const [, whole, fraction = '', b, unit] =
    /^(\d{1,15})(\.\d{1,3})?(?: ?(?:(B)|([KMGT])(?:iB)?))?$/i.exec(text) ?? []
  const letter = (b ?? unit ?? usual).toUpperCase()
  const [, size = 1] = units.find(([name]) => name === letter) ?? []
  if (whole === undefined || (fraction !== '' && size === 1)) return undefined
  return Math.round(Number(`${whole}${fraction}`) * size)
}

/** Returns a size in its largest whole unit, such as `64M`. */
function sizeText(bytes: number): string {
  const [name, size] = units.find(([, each]) => bytes > 0 && bytes % each === 0) ?? ['B', 1]
  return name === 'B' ? `${bytes}` : `${bytes / size}${name}`
}
